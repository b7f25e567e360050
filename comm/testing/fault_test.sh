#!/bin/sh
# fault_test.sh LAUNCH PROGRAM FAULT RANK LINE: runs PROGRAM on four ranks; FAULT is injected on RANK.
# The job must end with a non-zero exit code and leave no process. Exactly one line must name a rank: "rank RANK
# (host, pid N)", followed by the pattern LINE.
set -u
launch=$1 program=$2 fault=$3 rank=$4 line=$5
out=$(mktemp)
# The marker, an argument that the program ignores, identifies this job's processes.
marker=fault_test_marker_$$
sh "$launch" 4 "$program" "$fault" "$rank" "$marker" >"$out" 2>&1 </dev/null
code=$?
ended=$(date +%s.%N)
cat "$out"
fail() {
  echo "FAILED: $1" >&2
  exit 1
}
[ "$code" -ne 0 ] || fail "the exit code is 0"
# Open MPI writes some of its messages in pieces, so the program's line may follow such a piece.
began=$(sed -n 's/.*fault at \([0-9.]*\)$/\1/p' "$out")
[ -n "$began" ] || fail "the fault was not reached"
# The timeout is 2 s; on an idle machine the job ends about a second after it.
awk "BEGIN { exit !($ended - $began <= 20) }" || fail "the job took too long: $began to $ended"
[ "$(grep -o 'rank [0-9]* ([^ ]*, pid [0-9]*)' "$out" | wc -l)" = 1 ] || fail "not one line for the guilty rank"
grep -q "rank $rank ([^ ]*, pid [0-9]*):* *$line" "$out" || fail "the line is not: rank $rank ... $line"
# Zombies have ended; mpirun, their parent, did not reap them.
living=$(pgrep -f "$marker" | xargs -r ps -o stat=,pid= -p | grep -v '^Z')
[ -z "$living" ] || fail "processes are left: $living"
rm -f "$out"

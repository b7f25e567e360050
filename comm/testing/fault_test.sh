#!/bin/sh
# fault_test.sh LAUNCH PROGRAM FAULT RANK LINE: four ranks, of which RANK commits FAULT.
# The job must end in time with a non-zero code, exactly one line that begins with a rank, which is RANK's and goes on
# as the pattern LINE says, and no process left.
set -u
launch=$1 program=$2 fault=$3 rank=$4 line=$5
out=$(mktemp)
# The marker, an argument that the program ignores, finds this job's processes.
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
# Open MPI writes some of its own messages in pieces, so a line of ours may stand behind a piece of one.
began=$(sed -n 's/.*fault at \([0-9.]*\)$/\1/p' "$out")
[ -n "$began" ] || fail "the fault was not reached"
# The timeout is 2 s. Where other work keeps all cores busy, the scheduler's delays come on top.
limit=$(awk -v cores="$(nproc)" '{ print (($1 > cores) ? 6 : 3) }' /proc/loadavg)
awk "BEGIN { exit !($ended - $began <= $limit) }" || fail "the job took too long: $began to $ended"
[ "$(grep -o 'rank [0-9]* ([^ ]*, pid [0-9]*)' "$out" | wc -l)" = 1 ] || fail "not one line for the guilty rank"
grep -q "rank $rank ([^ ]*, pid [0-9]*):* *$line" "$out" || fail "the line is not: rank $rank ... $line"
# A zombie has ended; its parent, which was mpirun, has not been there to see it.
living=$(pgrep -f "$marker" | xargs -r ps -o stat=,pid= -p | grep -v '^Z')
[ -z "$living" ] || fail "processes are left: $living"
rm -f "$out"

#!/bin/sh
# start_test.sh LAUNCH PROGRAM FAULT RANK LINE: runs PROGRAM on four ranks, of which RANK does not take part in the
# start. The job must end with a non-zero exit code and a line that matches LINE, and leave no process.
set -u
launch=$1 program=$2 fault=$3 rank=$4 line=$5
out=$(mktemp)
marker=start_test_marker_$$
timeout 40 sh "$launch" 4 "$program" "$fault" "$rank" "$marker" >"$out" 2>&1 </dev/null
code=$?
cat "$out"
fail() {
  echo "FAILED: $1" >&2
  exit 1
}
[ "$code" -ne 0 ] || fail "the exit code is 0"
[ "$code" -ne 124 ] || fail "the job hangs"
grep -q "$line" "$out" || fail "there is no line: $line"
living=$(pgrep -f "$marker" | xargs -r ps -o stat=,pid= -p | grep -v '^Z')
[ -z "$living" ] || fail "processes are left: $living"
rm -f "$out"

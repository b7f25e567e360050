#!/bin/sh
# mismatch_test.sh LAUNCH PROGRAM [FLAG...]: runs every case of mismatch_program on three ranks, of which rank 1 makes
# a different call. The job must end with a non-zero exit code, before any timeout, and with one line that names rank 1
# and both calls. (If only ranks 1 and 2 have made their calls, the line may begin with rank 2.) The cases halves_* run
# on four ranks and give one or two lines. For messages (message_*, some of
# them in all_to_all_v), rank 0, which receives them, reports.
set -u
launch=$1 program=$2
shift 2
out=$(mktemp)
failed=0
call='#2 [a-z_]*\[tp\].* at mismatch_program.cc:[0-9]*'
who='([^ ]*, pid [0-9]*) is mismatched'
cases=$("$program")
if [ -z "$cases" ]; then
  echo "FAIL: $program lists no cases"
  exit 1
fi
for case in $cases; do
  ranks=3 lines=1 line="rank 1 $who: it entered $call where rank [02] entered $call"
  other_line="rank 2 $who: it entered $call where rank 1 entered $call"
  case $case in
    message_*)
      line='rank 0 ([^ ]*, pid [0-9]*): receive from rank 1 of the group: [a-z0-9]*\[[0-9]*\] was sent, [a-z0-9]*\[[0-9]*\] was expected'
      other_line=$line
      ;;
    halves_*)
      ranks=4 lines="[12]"
      line="rank [0-3] $who: it entered $call where rank [0-3] entered $call" other_line=$line
      ;;
  esac
  timeout 30 sh "$launch" "$ranks" "$program" "$case" "$@" >"$out" 2>&1 </dev/null
  code=$?
  if [ "$code" = 0 ] || [ "$code" = 124 ] || ! grep -c -e "$line" -e "$other_line" "$out" | grep -qx "$lines"; then
    echo "FAILED: $case: exit code $code"
    sed 's/^/    /' "$out"
    failed=$((failed + 1))
  fi
done
rm -f "$out"
[ "$failed" = 0 ]

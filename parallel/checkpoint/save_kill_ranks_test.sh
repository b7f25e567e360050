#!/bin/sh
# save_kill_ranks_test.sh LAUNCH PROGRAM: two ranks save; one is killed at some SavePoint (save_task.h). Afterwards the
# previous checkpoint is intact, or the new one is complete, and the next job saves as usual.
set -u
launch=$1 program=$2
fail() {
  echo "FAILED: $1" >&2
  exit 1
}
# Rank 0 passes all points, the others those of their own file.
for death in "0 0" "0 1" "0 2" "0 3" "0 4" "0 5" "0 6" "1 1" "1 2"; do
  folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/kill.XXXXXX")
  sh "$launch" 2 "$program" "$folder" 1 || fail "step 1 is not saved"
  # shellcheck disable=SC2086  # two arguments
  sh "$launch" 2 "$program" "$folder" 2 $death >"$folder.out" 2>&1 </dev/null && fail "nobody died at $death"
  # From point 5 (kLatestWritten) on, `latest` names step 2.
  case $death in "0 5" | "0 6") expected=2 ;; *) expected=1 ;; esac
  found=$(sh "$launch" 1 "$program" "$folder") || fail "no checkpoint after a death at $death"
  [ "$found" = "step $expected is whole" ] || fail "after a death at $death: $found, expected step $expected"
  sh "$launch" 2 "$program" "$folder" 3 || fail "step 3 is not saved after a death at $death"
  [ "$(sh "$launch" 1 "$program" "$folder")" = "step 3 is whole" ] || fail "step 3 is not whole after $death"
  left=$(find "$folder" -mindepth 1 -maxdepth 1 -type d | wc -l)
  [ "$left" = 1 ] || fail "after a death at $death $left folders are left: $(ls "$folder")"
done

#!/bin/sh
# skipped_block_test.sh LAUNCH PROGRAM: rank 0 gathers the parameters of unit 2 (block 1) while rank 1 gathers those of
# unit 3, which has the same size. The job must abort at once with a line that names both, with shared memory and with
# messages.
set -u
launch=$1 program=$2
out=$(mktemp)
failed=0
for shared_bytes in 4194304 0; do
  timeout 30 sh "$launch" 2 "$program" "$shared_bytes" >"$out" 2>&1 </dev/null
  code=$?
  call='all_gather\[dp_shard\] f64\[[0-9]*\] tag'
  if [ "$code" = 0 ] || [ "$code" = 124 ] || ! grep -q -e "rank 0 .* entered #.* $call 2 .* rank 1 entered #.* $call 3" \
    -e "rank 1 .* entered #.* $call 3 .* rank 0 entered #.* $call 2" "$out"; then
    echo "FAILED: shared_bytes=$shared_bytes: exit code $code"
    sed 's/^/    /' "$out"
    failed=1
  fi
done
rm -f "$out"
[ "$failed" = 0 ]

#!/bin/sh
# layer_test.sh RUN_ON_RANKS LAYER: the program prints identical output on 1 and 3 ranks, finishes refinement with far
# fewer steps than a uniform grid of the same error, says where no uniform grid was found, writes the residuals of the
# last grid, does not lose an error that is NaN, and rejects bad flags with a one-line message.
set -eu
run=$1
program=$2
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for ranks in 1 3; do
  sh "$run" "$ranks" "$program" --nt=32 --levels=3 --cfactor=2 --fmg --max-iter=20 --history="$folder/history" > "$folder/$ranks"
  iterations=$(grep ' steps  ' "$folder/$ranks" | tail -1 | awk '{print $3}')
  test "$(wc -l < "$folder/history")" = "$((iterations + 1))"
  rm "$folder/history"
done
cmp "$folder/1" "$folder/3"
grep -q '^no step asks to be cut' "$folder/1"
steps=$(grep ' steps  ' "$folder/1" | tail -1 | awk '{print $1}')
uniform=$(awk '/^uniform steps/ {print $NF}' "$folder/1")
test "$uniform" -gt $((4 * steps))
# A layer far shorter than any uniform step.
"$program" --nt=32 --levels=2 --cfactor=2 --fmg --width=1e-8 --error-tol=1e-3 > "$folder/short"
grep -q '^uniform steps for this error, doubled from 32: more than 8388608$' "$folder/short"
# The source is infinite at t = 1: errors are NaN from there on.
"$program" --nt=8 --levels=2 --cfactor=2 --fmg --width=5e-324 > "$folder/nan"
grep -q 'largest error inf$' "$folder/nan"
if grep "^uniform" "$folder/nan"; then exit 1; fi
for flags in --width=0 --error-tol=0 --max-factor=1 --levels=1 --periodic --history=/proc/no/such/file; do
  if "$program" --nt=32 --cfactor=2 "$flags" > "$folder/out" 2> "$folder/error"; then
    echo "$program accepts $flags"
    exit 1
  fi
  test "$(wc -l < "$folder/error")" = 1 || { cat "$folder/error"; exit 1; }
done

#!/bin/sh
# same_output_on_any_ranks_test.sh RUN_ON_RANKS PROGRAM...: every example prints identical output on 1, 3 and 4 ranks,
# apart from its line of times, does not compare a periodic solution with one from an initial condition, and rejects bad
# flags with a one-line message and a non-zero exit code.
set -eu
run=$1
shift
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for program in "$@"; do
  for flags in "--nt=411 --levels=3 --grading=1.3 --stagnation=5 --divergence-factor=1e6 --time-norm=max" "--nt=254 --levels=4 --cfactor=2 --fmg --skip-downcycle --storage=cpoints --c-point-levels=2"; do
    for ranks in 1 3 4; do
      # shellcheck disable=SC2086
      sh "$run" "$ranks" "$program" $flags --history="$folder/history" > "$folder/all"
      grep -v '^time ' "$folder/all" > "$folder/$ranks"
      grep -q '^iter 2  |r| = [0-9.e+-]*  factor = ' "$folder/$ranks"
      test "$(grep -c '^iter ' "$folder/$ranks")" = "$(($(wc -l < "$folder/history") - 1))"
    done
    cmp "$folder/1" "$folder/3"
    cmp "$folder/1" "$folder/4"
  done
  case $program in
    */dahlquist | */logistic)
      "$program" --nt=64 --periodic > "$folder/periodic"
      grep -q '^largest error against the serial sweep [^,]*$' "$folder/periodic"
      if grep 'u(0) = [0-9]' "$folder/periodic"; then exit 1; fi
      ;;
  esac
  for flags in --nt=0 --levels=9 --cfactor=1 --cycle=X --unknown --nrelax=a --grading=0 --stagnation=-1 --time-norm=3 --history=/proc/no/such/file; do
    if "$program" $flags > "$folder/out" 2> "$folder/error"; then
      echo "$program accepts $flags"
      exit 1
    fi
    test "$(wc -l < "$folder/error")" = 1 || { cat "$folder/error"; exit 1; }
  done
done

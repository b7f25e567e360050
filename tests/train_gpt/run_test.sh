#!/bin/sh
# run_test.sh TEST.py TRAIN_GPT GENERATE PRINT_HISTORY
set -eu
test=$1
shift
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$test" "$@"

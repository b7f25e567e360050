#!/bin/sh
# run_test.sh TEST.py PROGRAM GENERATE PRINT_HISTORY
set -eu
test=$1
shift
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/train_gpt
exec python3 "$test" "$@"

#!/bin/sh
# run_test.sh TEST.py REPORT WRITE_RUN
set -eu
test=$1
shift
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$test" "$@"

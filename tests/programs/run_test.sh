#!/bin/sh
# run_test.sh TEST.py PROGRAM...: from the repository's root or a test's runfiles.
set -eu
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/programs:tests/train_gpt
exec "${PLAIT_PYTHON:-python3}" "$@"

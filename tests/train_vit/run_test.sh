#!/bin/sh
# run_test.sh TEST.py TRAIN_VIT
set -eu
test=$1
shift
export PYTHONDONTWRITEBYTECODE=1
exec "${PLAIT_PYTHON:?its path is set by ./bazelw setup}" "$test" "$@"

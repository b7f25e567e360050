#!/usr/bin/env bash
# Runs a Python test with the packages that ./bazelw setup installs: torchvision_test.sh TEST.py PROGRAM.
set -euo pipefail
if [ ! -x "${PLAIT_PYTHON:-}" ]; then
  echo "no Python with torchvision: run ./bazelw setup, which installs it and names it in .bazelrc.local" >&2
  exit 1
fi
exec "$PLAIT_PYTHON" -I "$@"

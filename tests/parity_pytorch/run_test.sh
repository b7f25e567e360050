#!/usr/bin/env bash
# Runs a test with the Python that has torch: run_test.sh TEST.py MODEL STEP_PROGRAM PEER_STEP.py.
set -euo pipefail
if [ ! -x "${PLAIT_PYTHON:-}" ]; then
  echo "no Python with torch and safetensors: run ./bazelw setup, which names it in .bazelrc.local" >&2
  exit 1
fi
export PYTHONDONTWRITEBYTECODE=1
exec "$PLAIT_PYTHON" "$@"

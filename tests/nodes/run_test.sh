#!/bin/sh
# run_test.sh TEST.py PROGRAM...: the test in namespaces of its own, as root of them. Without root, user namespaces must be
# allowed.
set -u
for tool in unshare nsenter ip mpirun; do
  command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
  command -v "$tool" >/dev/null || {
    echo "tests/nodes: needs $tool (packages util-linux, iproute2, openmpi-bin)" >&2
    exit 1
  }
done
export PATH PYTHONDONTWRITEBYTECODE=1
as_root=
[ "$(id -u)" = 0 ] || as_root=--map-root-user
namespaces="$as_root --net --mount --ipc --pid --fork --kill-child --mount-proc"
# shellcheck disable=SC2086  # several options
unshare $namespaces true 2>/dev/null || {
  echo "tests/nodes: user $(id -un) may not create namespaces here; run as root, or leave these tests out with" \
    "--test_tag_filters=-needs-namespaces" >&2
  exit 1
}
# shellcheck disable=SC2086
exec unshare $namespaces "${PLAIT_PYTHON:-python3}" "$@"

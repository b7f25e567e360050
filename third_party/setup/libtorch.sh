# LibTorch from the wheel of the Python package `torch`. Sourced by setup.sh, which defines say and fail.
# shellcheck shell=bash

LIBTORCH_VERSION="2.11.0"
# Wheels and their contents are on the disk together for a moment.
LIBTORCH_FREE_GIB=8

# Sets `python` to one that can make virtual environments: Debian's own before a private one that leads PATH.
choose_python() {
  local candidate
  for candidate in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      python="$candidate"
      return
    fi
  done
  fail "no Python 3.10 or newer with venv: install python3-venv"
}

# Loads the library with everything that it needs, as a program would.
libtorch_works() {
  local torch
  torch="$(echo "$1"/lib/python3*/site-packages/torch)"
  [ -f "$torch/include/ATen/ATen.h" ] && grep -q "'$LIBTORCH_VERSION" "$torch/version.py" &&
    "$python" -c 'import ctypes, sys; [ctypes.CDLL(sys.argv[1] + "/lib/" + name, ctypes.RTLD_GLOBAL)
                  for name in ("libtorch_cpu.so", "libtorch_cuda.so", "libtorch.so")]' "$torch"
}

check_free_space() {
  local free
  free="$(df -Pk "$1" | awk 'NR == 2 {print int($4 / 1048576)}')"
  [ "$free" -ge "$LIBTORCH_FREE_GIB" ] ||
    fail "LibTorch needs $LIBTORCH_FREE_GIB GiB while it is installed (5 stay), $1 has $free GiB free: make room, or set XDG_CACHE_HOME to a larger disk"
}

# install_libtorch CACHE: CACHE/libtorch-VERSION with a file .complete in it, made under another name and renamed.
install_libtorch() {
  local place="$1/libtorch-$LIBTORCH_VERSION"
  choose_python
  if [ -f "$place/.complete" ]; then return; fi
  rm -rf "$1"/libtorch-*.partial
  if libtorch_works "$place" 2>/dev/null; then
    touch "$place/.complete"
    return
  fi
  rm -rf "$place"
  check_free_space "$1"
  say "installing LibTorch $LIBTORCH_VERSION (tensors, autograd) from its wheel into $place: 5 GB, a minute or more"
  local log="$1/tmp/pip.log"
  "$python" -m venv "$place.partial" >"$log" 2>&1 || {
    tail -n 3 "$log" >&2
    fail "$python cannot make a virtual environment in $place.partial"
  }
  TMPDIR="$1/tmp" PYTHONNOUSERSITE=1 "$place.partial/bin/python" -m pip install --no-input --no-cache-dir \
    --disable-pip-version-check "torch==$LIBTORCH_VERSION" >"$log" 2>&1 || {
    { grep -iE '^ *(error|warning.*retr)' "$log" || true; } | tail -n 3 >&2
    rm -rf "$place.partial"
    fail "could not get torch==$LIBTORCH_VERSION with pip: is there a network, and a package index?"
  }
  libtorch_works "$place.partial" || fail "LibTorch was installed in $place.partial but cannot be loaded"
  touch "$place.partial/.complete"
  mv "$place.partial" "$place"
}

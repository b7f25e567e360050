# Debian packages that Plait is built from. Sourced by setup.sh, which defines say and fail.
# shellcheck shell=bash

# What each group is for is printed when one of it has to be installed.
PACKAGE_GROUPS=(
  "compilers and build tools: clang-19 g++ pkg-config"
  "Bazel: bazel-bootstrap bazel-rules-java"
  "messages between ranks (MPI): openmpi-bin libopenmpi-dev libhwloc-dev"
  "data files (HDF5, compression): libhdf5-openmpi-dev zlib1g-dev liblzma-dev"
  "libraries (flags, status, JSON, logs, event files): libabsl-dev nlohmann-json3-dev libspdlog-dev libprotobuf-dev protobuf-compiler"
  "report --follow (HTTP): libcpp-httplib-dev"
  "image and video files (FFmpeg): libavcodec-dev libavformat-dev libavutil-dev libswscale-dev"
  "tests and benchmarks: libgtest-dev libgmock-dev libbenchmark-dev"
  "tests of jobs and processes, some under a Slurm that they start themselves: procps munge slurmctld slurmd slurm-client"
  "tests on a simulated cluster of network namespaces: iproute2 util-linux"
  "LibTorch's installer: python3 python3-venv"
  "plots: gnuplot-nox"
  "image data: dataset-fashion-mnist"
  "tests of pages in a browser: chromium-headless-shell"
  "tests of history files: netcdf-bin"
  "tools/check: clang-format clang-tidy-16 shellcheck"
)

# Not installed by set-up: what one command needs.
#   tests/fuzz/run: libclang-rt-19-dev
#   tests/sanitizers/run: libclang-rt-19-dev llvm-19

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The packages of a group that are missing; a Bazel that the user already has takes the place of Debian's.
missing_of() {
  local package missing=()
  for package in ${1#*: }; do
    if [ "$package" = bazel-bootstrap ] && command -v bazel >/dev/null; then continue; fi
    if [ "$package" = bazel-rules-java ] && command -v bazel >/dev/null && ! installed bazel-bootstrap; then continue; fi
    installed "$package" || missing+=("$package")
  done
  echo "${missing[*]}"
}

# Prints the words that run a command as root without asking; fails where there is no such way.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    echo "env"
  elif sudo -n true 2>/dev/null; then
    echo "sudo -n"
  else
    return 1
  fi
}

# Some packages bring daemons (munged, slurmctld, slurmd). Nothing here needs the system's own: while policy-rc.d says
# 101, an init system starts none of them. A policy that the machine has already is left as it is.
apt_install() (
  root="$1" log="$2" policy=/usr/sbin/policy-rc.d
  shift 2
  # A word such as "sudo -n" must split.
  # shellcheck disable=SC2086
  if [ ! -e "$policy" ] && printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null; then
    trap '$root rm -f "$policy"' EXIT
    $root chmod 755 "$policy"
  fi
  # shellcheck disable=SC2086
  $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1
)

install_packages() {
  command -v dpkg-query >/dev/null ||
    fail "this is no Debian system: install what third_party/setup/packages.sh lists, then call bazel itself"
  local group missing wanted=()
  for group in "${PACKAGE_GROUPS[@]}"; do
    missing="$(missing_of "$group")"
    if [ -z "$missing" ]; then continue; fi
    say "needed for ${group%%:*}: $missing"
    # shellcheck disable=SC2206
    wanted+=($missing)
  done
  if [ ${#wanted[@]} = 0 ]; then return; fi
  local root log
  root="$(as_root)" || fail "not root, and sudo asks for a password. Run this, then ./bazelw again:
    sudo apt-get update && sudo apt-get install -y --no-install-recommends ${wanted[*]}"
  log="$(mktemp)"
  say "installing ${#wanted[@]} Debian packages (under a minute)"
  if ! apt_install "$root" "$log" "${wanted[@]}"; then
    say "package lists are missing or old; apt-get update"
    # shellcheck disable=SC2086
    if ! { $root apt-get update -q >"$log" 2>&1 && apt_install "$root" "$log" "${wanted[@]}"; }; then
      { grep -E '^(E|Err|W):' "$log" || true; } | tail -n 5 >&2
      fail "could not install the packages: is there a network, and a Debian archive in /etc/apt? (all of it: $log)"
    fi
  fi
  rm -f "$log"
}

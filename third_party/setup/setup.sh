#!/usr/bin/env bash
# Sets a machine up for Plait; called by ./bazelw as: setup.sh WORKSPACE HASH. Asks nothing, can be repeated, and two
# of them at once wait for each other. Says what it does and why.
set -euo pipefail

workspace="$1"
setup_hash="$2"
here="$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"

say() { printf 'bazelw: %s\n' "$*"; }
fail() {
  printf 'bazelw: %s\n' "$*" >&2
  exit 1
}

# shellcheck source=third_party/setup/cache_folder.sh
. "$here/cache_folder.sh"
# shellcheck source=third_party/setup/packages.sh
. "$here/packages.sh"
# shellcheck source=third_party/setup/libtorch.sh
. "$here/libtorch.sh"
# shellcheck source=third_party/setup/compiler.sh
. "$here/compiler.sh"
# shellcheck source=third_party/setup/python.sh
. "$here/python.sh"

case "$workspace" in
  *[[:space:]]*) fail "the checkout lies in '$workspace': Bazel does not work in folders with blanks; move it" ;;
esac

# A Bazel job takes up to 1.3 GB (LibTorch's headers): twice as many as there are cores (.bazelrc), if the memory bears them.
jobs() {
  local cores kilobytes limit by_memory
  cores=$((2 * $(nproc)))
  kilobytes="$(awk '/^MemTotal:/ {print $2}' /proc/meminfo)"
  limit="$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)"
  if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$kilobytes" ]; then kilobytes=$((limit / 1024)); fi
  by_memory=$((kilobytes / 1300000))
  if [ "$by_memory" -lt 1 ]; then by_memory=1; fi
  echo $((cores < by_memory ? cores : by_memory))
}

# Options that only newer Bazels know, for WORKSPACE files.
bazel_options() {
  local major
  major="$(bazel --version 2>/dev/null | sed -n 's/^bazel \([0-9]\+\)\..*/\1/p')"
  if [ "${major:-0}" -ge 9 ]; then fail "this Bazel has no WORKSPACE any more; install 'bazel-bootstrap' or Bazel 6 or 7"; fi
  if [ "${major:-0}" -ge 6 ]; then echo "common --noenable_bzlmod"; fi
  if [ "${major:-0}" -ge 8 ]; then echo "common --enable_workspace"; fi
}

# Written to a new name, then renamed: a Bazel that starts meanwhile reads the old or the new one.
write_rc() {
  local cache="$1" chosen="$2" new="$workspace/.bazelrc.local.$$"
  {
    echo "# setup $setup_hash"
    echo "# libtorch $cache/plait/libtorch-$LIBTORCH_VERSION"
    echo "# Written by ./bazelw for this machine."
    echo "build --disk_cache=$cache/plait/bazel-disk"
    echo "build --jobs=$(jobs)"
    echo "build --repo_env=CC=$compiler"
    bazel_options
    case "$(command -v bazel)" in
      /bin/bazel | /usr/bin/bazel | /usr/local/bin/bazel) ;; # where tests look, too
      *) echo "test --test_env=PLAIT_BAZEL=$(command -v bazel)" ;;
    esac
    if [ -f "$cache/plait/python-$PYTHON_SET/.complete" ]; then
      echo "test --test_env=PLAIT_PYTHON=$cache/plait/python-$PYTHON_SET/bin/python"
    fi
    if [ "$chosen" = yes ]; then
      echo "#cache $cache"
      echo "startup --output_user_root=$cache/bazel"
      echo "test --test_env=XDG_CACHE_HOME=$cache"
    fi
  } >"$new"
  echo "$cache/plait/libtorch-$LIBTORCH_VERSION" >"$workspace/third_party/libtorch_location.txt.$$"
  mv "$workspace/third_party/libtorch_location.txt.$$" "$workspace/third_party/libtorch_location.txt"
  mv "$new" "$workspace/.bazelrc.local"
}

fetch_recordings() {
  local script="$workspace/data/har/fetch_recordings.py"
  if [ ! -f "$script" ]; then return; fi
  say "fetching the human-activity recordings into $1/plait/data (default data of train_gru)"
  mkdir -p "$1/plait/data"
  TMPDIR="$1/plait/tmp" "$python" "$script" --out "$1/plait/data" ||
    say "no recordings: train_gru will use synthetic data and say so; run ./bazelw setup to try again"
}

# Of a set-up that was interrupted while it precompiled: files would be compiled without them, slowly and silently.
remove_unfinished_headers() {
  local folder
  for folder in "$1"/clang-*; do
    if [ -d "$folder" ] && [ "$(find "$folder" -name '*.pch' | wc -l)" -lt 2 ]; then rm -rf "$folder"; fi
  done
}

main() {
  [ -w "$workspace" ] || fail "cannot write in $workspace: the settings of this machine belong there"
  local cache chosen=no
  cache="$(choose_cache "/var/tmp/plait-$(id -u)")"
  case "$cache" in
    *[[:space:]]*) fail "the folder for caches is '$cache': Bazel does not work in folders with blanks; set XDG_CACHE_HOME" ;;
  esac
  # Bazel knows the home folder alone, and tests get no variables but those that they are given.
  if [ "$cache" != "$(home_folder)/.cache" ]; then chosen=yes; fi
  if [ "$cache" = "/var/tmp/plait-$(id -u)" ]; then
    say "no home folder that can be written: everything goes to $cache"
  fi
  exec 9>"$cache/plait/setup.lock"
  if ! flock -n 9; then
    say "another set-up is at work; waiting for it"
    flock 9
  fi
  mkdir -p "$cache/plait/tmp"
  remove_unfinished_headers "$cache/plait"
  install_packages
  install_libtorch "$cache/plait"
  install_compiler "$cache/plait"
  install_python "$cache/plait"
  fetch_recordings "$cache"
  rm -rf "$cache/plait/tmp"
  write_rc "$cache" "$chosen"
  say "set-up is complete"
}

main

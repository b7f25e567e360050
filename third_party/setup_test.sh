#!/usr/bin/env bash
# Where set-up puts its caches, and when bazelw sets up again: setup_test.sh BAZELW CACHE_FOLDER_SH.
set -euo pipefail
bazelw="$(realpath "$1")"
cache_folder="$(realpath "$2")"
cd "$TEST_TMPDIR"
failures=0
check() { # WHAT EXPECTED FOUND
  if [ "$2" != "$3" ]; then
    echo "FAIL: $1: expected '$2', found '$3'"
    failures=$((failures + 1))
  fi
}

# chosen NAME=VALUE ...: the folder, or the error. A file stands for a folder that cannot be made.
chosen() {
  # shellcheck disable=SC2016
  env -u XDG_CACHE_HOME "$@" bash -euc 'fail() { echo "error: $*"; exit 1; }; . "$0"; choose_cache "$1/fallback"' "$cache_folder" "$PWD" || true
}
touch file
check "the user's" "$PWD/own" "$(chosen XDG_CACHE_HOME="$PWD/own" HOME="$PWD/home")"
check "the home's" "$PWD/home/.cache" "$(chosen HOME="$PWD/home")"
check "a relative one" "$PWD/home/.cache" "$(chosen XDG_CACHE_HOME=own HOME="$PWD/home")"
check "no home" "$PWD/fallback" "$(chosen HOME="$PWD/file")"
check "one that cannot be used" "error: cannot write in $PWD/file/plait: set XDG_CACHE_HOME to a folder of yours" \
  "$(chosen XDG_CACHE_HOME="$PWD/file" HOME="$PWD/home")"

# A checkout whose set-up only says where it would put things, and a Bazel that says what it is given.
mkdir -p checkout/third_party/setup bin libtorch cache/plait
cp "$bazelw" checkout/bazelw
touch libtorch/.complete
cat >checkout/third_party/setup/setup.sh <<'END'
echo "set-up in ${XDG_CACHE_HOME:-home}"
printf '%s\n' "# setup $2" "# libtorch $PWD/libtorch" "build --disk_cache=$PWD/cache/plait/bazel-disk" "build --repo_env=CC=$PWD/bin/clang" \
  "#cache $PWD/cache" >"$1/.bazelrc.local"
END
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "bazel $* in ${XDG_CACHE_HOME:-home}"\n' >bin/bazel
touch bin/clang
chmod +x bin/bazel bin/clang
run() { env -u XDG_CACHE_HOME PATH="$PWD/bin:$PATH" "$@" checkout/bazelw build 2>&1 | tr '\n' ';'; }
handed="bazel build in $PWD/cache;"
check "the first time" "set-up in $PWD/cache;$handed" "$(run XDG_CACHE_HOME="$PWD/cache")"
check "the second time" "$handed" "$(run)"
rm bin/clang
check "without its compiler" "set-up in $PWD/cache;$handed" "$(run)"
touch bin/clang
chmod +x bin/clang
rm -r cache
check "without its cache" "set-up in $PWD/cache;$handed" "$(run)"
mkdir -p cache/plait
echo "# changed" >>checkout/third_party/setup/setup.sh
check "after a change" "set-up in $PWD/cache;$handed" "$(run)"
check "and then" "$handed" "$(run)"
exit $((failures > 0))

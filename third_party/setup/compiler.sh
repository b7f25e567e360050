# clang with precompiled headers of LibTorch and the standard library, which are most of what a file compiles. Sourced by
# setup.sh, which defines say, fail and here, after libtorch.sh, which names LIBTORCH_VERSION.
# shellcheck shell=bash disable=SC2154

# Compiles an empty file with each, as Bazel would: fails if one is missing or cannot be used, or if a header has changed
# since, which the compiler says before it goes on without.
precompiled_headers_work() {
  local defines said
  for defines in -DNDEBUG "-DNDEBUG -DAT_PER_OPERATOR_HEADERS"; do
    # shellcheck disable=SC2086
    said="$("$1/clang" -O2 $defines -std=c++20 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=1 -fstack-protector -fsyntax-only \
      -MD -MF "$1/empty.d" -c "$1/empty.cc" 2>&1)" || return 1
    [ -z "$said" ] || return 1
  done
}

# install_compiler CACHE: sets `compiler` to clang with precompiled headers, CACHE/clang-HASH/clang. The folder is part of
# Bazel's commands, so its name says what is in it.
install_compiler() {
  local folder hash
  hash="$({
    cat "$here/compiler.sh" "$here/clang" "$here"/*_headers.h
    echo "$LIBTORCH_VERSION"
    dpkg-query -W clang-19 "libstdc++-*-dev" libc6-dev libabsl-dev libgtest-dev libgmock-dev nlohmann-json3-dev || true
  } 2>/dev/null | sha256sum | cut -c1-16)"
  folder="$1/clang-$hash"
  compiler="$folder/clang"
  if precompiled_headers_work "$folder"; then return; fi
  say "precompiling the headers of LibTorch and the standard library into $folder: 200 MB, under a minute"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$here/clang" "$here"/*_headers.h "$folder"
  touch "$folder/empty.cc"
  ln -s "$(echo "$1/libtorch-$LIBTORCH_VERSION"/lib/python3*/site-packages/torch/include)" "$folder/libtorch"
  if ! "$compiler" --precompile >"$1/tmp/clang.log" 2>&1 || ! precompiled_headers_work "$folder"; then
    tail -n 3 "$1/tmp/clang.log" >&2
    fail "clang-19 cannot precompile the headers of LibTorch in $folder: is the disk full?"
  fi
}

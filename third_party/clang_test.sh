#!/bin/sh
# Which compiler `clang` calls, and with what, for arguments such as Bazel's; and what it does where the precompiled header
# is older than a header of the system. Compilers that write down their arguments take the place of the real ones.
set -eu
wrapper="$PWD/$1"
cd "$TEST_TMPDIR"
mkdir bin headers headers-address-undefined,float
touch headers/standard.pch headers/libtorch.pch headers-address-undefined,float/standard.pch
cp "$wrapper" clang
cat >bin/g++ <<'END'
#!/bin/sh
echo "g++ $*" >>calls
END
cat >bin/clang-19 <<'END'
#!/bin/sh
echo "clang $*" >>calls
case "$*" in
  *stale.cc*.pch*) echo "fatal error: file 'x.h' has been modified since the precompiled header 'y' was built" >&2 && exit 1 ;;
  *warns.cc*) echo "a warning" >&2 ;;
  *wrong.cc*) echo "an error" >&2 && exit 1 ;;
esac
END
chmod +x bin/g++ bin/clang-19
PATH="$TEST_TMPDIR/bin:$PATH"

fail() {
  echo "FAILED: $1" >&2
  cat calls said >&2
  exit 1
}
# calls CODE ARGUMENT...: expects the exit code; what was called is then in `calls`, what was said in `said`.
calls() {
  code="$1"
  shift
  rm -f calls
  actual=0
  ./clang "$@" >said 2>&1 || actual=$?
  [ "$actual" = "$code" ] || fail "exit code $actual of $*, expected $code"
}
says() { grep -q -e "$1" "$2" || fail "no \"$1\" in $2"; }
says_not() { if grep -q -e "$1" "$2"; then fail "\"$1\" in $2"; fi; }

flags="-O2 -D_FORTIFY_SOURCE=1 -DNDEBUG -Wall -std=c++20 -iquote ."
# shellcheck disable=SC2086
for order in "$flags" "-O2 -DNDEBUG -std=c++20"; do
  calls 0 $order -c a.cc -o a.o
  says "^clang .*-include-pch ./headers/standard.pch" calls
  calls 0 $order -DAT_PER_OPERATOR_HEADERS -c a.cc -o a.o
  says "^clang .*-include-pch ./headers/libtorch.pch" calls
  for other in -fPIC -O1 -fsanitize=address; do
    calls 0 $order $other -c a.cc -o a.o
    says "^clang .*-MMD" calls # Bazel refuses headers of the system that it does not know
    says_not pch calls
  done
  calls 0 $order -c a.c -o a.o
  says_not pch calls
  for kernel in -mavx2 -ffp-contract=off; do
    calls 0 $order $kernel -Wthread-safety -c a.cc -o a.o
    says "^g++ .*$kernel" calls
    says_not thread-safety calls
  done
  sanitized="$order -O1 -fsanitize=address -fsanitize=undefined,float -fno-sanitize-recover=undefined"
  calls 0 $sanitized -c a.cc -o a.o
  says "^clang .*-include-pch ./headers-address-undefined,float/standard.pch" calls
  calls 0 $sanitized -mavx2 -c a.cc -o a.o
  says "^g++ .*-fsanitize=address" calls
  for other in -fno-sanitize=all -DAT_PER_OPERATOR_HEADERS; do # the last: no such header has been made
    calls 0 $sanitized $other -c a.cc -o a.o
    says "^clang .*-MMD" calls
    says_not pch calls
  done
  calls 0 $order -c warns.cc -o a.o
  says "a warning" said
  calls 1 $order -c wrong.cc -o a.o
  says "an error" said
  [ "$(wc -l <calls)" = 1 ] || fail "compiled a file with an error twice"
  calls 0 $order -c stale.cc -o a.o
  says "until ./bazelw setup" said
  [ "$(wc -l <calls)" = 2 ] || fail "not compiled again"
  tail -n 1 calls >last
  says_not pch last
  says "-MMD" last # Bazel refuses headers of the system that it does not know
done
calls 0 a.o -o program
says_not pch calls
says_not -MMD calls

calls 0 --precompile
says "standard_headers.h -o ./headers/standard.pch" calls
says "libtorch_headers.h -o ./headers/libtorch.pch" calls
calls 0 --precompile -O1 -fsanitize=thread
says "-O1 -fsanitize=thread .*-o ./headers-thread/libtorch.pch" calls

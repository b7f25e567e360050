#!/usr/bin/env bash
# A problem whose states have no StateOperations: the compiler prints exactly one error, which says what to define.
set -euo pipefail
# Compiles in the source tree: headers of other packages are not among the test's data.
cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
cat >"$TEST_TMPDIR/problem.cc" <<'CODE'
#include "mgrit/problem.h"
struct Pair {
  double x, y;
};
struct Decay : plait::mgrit::Problem<Pair> {
  void Initialize(std::int64_t, double, Pair& u) override { u = {1, 1}; }
  void Step(const plait::mgrit::StepInterval&, const Pair& u, Pair& out) override { out = u; }
};
Decay problem;
CODE
# shellcheck disable=SC2046
if g++ -std=c++20 -fsyntax-only -I. -DOMPI_SKIP_MPICXX $(pkg-config --cflags ompi absl_status) "$TEST_TMPDIR/problem.cc" 2>"$TEST_TMPDIR/errors"; then
  echo "it compiles"
  exit 1
fi
grep 'error:' "$TEST_TMPDIR/errors"
[ "$(grep -c 'error:' "$TEST_TMPDIR/errors")" = 1 ]
grep -q 'error: static assertion failed: no StateOperations .*specialise plait::mgrit::StateOperations<S> with Copy' "$TEST_TMPDIR/errors"

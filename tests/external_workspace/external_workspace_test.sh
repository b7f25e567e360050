#!/usr/bin/env bash
# Another Bazel workspace builds and runs programs on single libraries of Plait. It has an output base of its own, so
# it cannot wait for the Bazel that runs this test.
set -euo pipefail

# The runfile is a link into the source tree, where the other workspace lies beside it.
here="$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"
cd "$here/workspace"

bazel="${PLAIT_BAZEL:-bazel}"
unset TEST_TMPDIR_FOR_BAZEL RUNFILES_DIR RUNFILES_MANIFEST_FILE
temporary="$TEST_TMPDIR"
unset TEST_TMPDIR # Bazel would take it for its own root
other() { "$bazel" --output_base="$temporary/output_base" --max_idle_secs=30 "$@"; }
run() {
  # Not quiet on failure: the log is all there is to see.
  other run --experimental_convenience_symlinks=ignore --color=no --noshow_progress "$1" 2>"$temporary/log" || {
    cat "$temporary/log"
    echo "FAILED: $1"
    exit 1
  }
}
trap 'other shutdown >/dev/null 2>&1; chmod -R u+w "$temporary/output_base"; rm -rf "$temporary/output_base"' EXIT

run //:timers | tee "$temporary/timers"
grep -q '^   \*\*\* Proc = 0        \*\*\*$' "$temporary/timers"
grep -Eq '^  draw {26} \|\|       1000 ' "$temporary/timers"

run //:decay | tee "$temporary/decay"
grep -q 'differs from the serial sweep by' "$temporary/decay"

# Every label that the README offers, ":cell" behind "@plait//models/gru:serial" too: it exists, and is visible here.
mkdir -p "$temporary/packages/labels"
"${PLAIT_PYTHON:-python3}" - "$here/../../README.md" >"$temporary/packages/labels/BUILD" <<'PYTHON'
import re
import sys

labels = []
with open(sys.argv[1], encoding="utf-8") as file:
    for group in re.findall("`@plait//[^`]*`(?:, `:[^`]*`)*", file.read()):
        first, *others = re.findall("`([^`]*)`", group)
        labels += [first] + [first.split(":")[0] + other for other in others]
assert len(labels) > 20, labels
print("cc_library(name = 'labels', deps = %r)" % sorted(set(labels)))
PYTHON
other build --package_path="%workspace%:$temporary/packages" --nobuild --color=no --noshow_progress //labels 2>"$temporary/log" || {
  cat "$temporary/log"
  echo "FAILED: labels of the README"
  exit 1
}

# Code that is generated has the includes of a library in another workspace.
other build --experimental_convenience_symlinks=ignore --color=no --noshow_progress @plait//data/history:tensorboard_event @plait//data/text:sentence_piece_model \
  @plait//parallel/plan:cluster_file 2>"$temporary/log" || {
  cat "$temporary/log"
  echo "FAILED: generated code"
  exit 1
}

# The tutorial's folder as a workspace: labels and visibility only. //tests/tutorial builds and runs it.
cd "$here/../tutorial/workspace"
other build --nobuild --color=no --noshow_progress //... 2>"$temporary/log" || {
  cat "$temporary/log"
  echo "FAILED: the tutorial"
  exit 1
}

#!/usr/bin/env bash
# docs/build makes the pages, and refuses a link that leads nowhere.
set -euo pipefail
docs/build "$TEST_TMPDIR/site"
for page in index install architecture benchmarks decisions/001-ranks-own-steps; do
  [ -s "$TEST_TMPDIR/site/$page.html" ] || { echo "no $page.html"; exit 1; }
done

docs/build "$TEST_TMPDIR/site" # in place of earlier pages

# A folder of other files stays as it is; a relative one is that of the caller.
mkdir -p "$TEST_TMPDIR/runs/train_gpt"
touch "$TEST_TMPDIR/runs/train_gpt/history.h5"
build="$PWD/docs/build"
if error="$(cd "$TEST_TMPDIR" && "$build" runs 2>&1)"; then
  echo "files of others were removed"
  exit 1
fi
grep -q "^docs/build: $TEST_TMPDIR/runs holds other files" <<<"$error" || { echo "not told: $error"; exit 1; }
[ -f "$TEST_TMPDIR/runs/train_gpt/history.h5" ] || { echo "a history is gone"; exit 1; }

mkdir "$TEST_TMPDIR/copy"
cp -rL docs mkdocs.yml "$TEST_TMPDIR/copy"
chmod -R u+w "$TEST_TMPDIR/copy"
echo '[gone](nowhere.md)' >>"$TEST_TMPDIR/copy/docs/trust.md"
if error="$("$TEST_TMPDIR/copy/docs/build" "$TEST_TMPDIR/site" 2>&1)"; then
  echo "a dead link was taken"
  exit 1
fi
grep -q "trust.md.*nowhere.md" <<<"$error" || { echo "the dead link is not named: $error"; exit 1; }

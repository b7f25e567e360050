#!/usr/bin/env bash
# docs/build makes the pages, and refuses a link that leads nowhere.
set -euo pipefail
docs/build "$TEST_TMPDIR/site"
for page in index install architecture benchmarks decisions/001-ranks-own-steps; do
  [ -s "$TEST_TMPDIR/site/$page.html" ] || { echo "no $page.html"; exit 1; }
done

mkdir "$TEST_TMPDIR/copy"
cp -rL docs mkdocs.yml "$TEST_TMPDIR/copy"
chmod -R u+w "$TEST_TMPDIR/copy"
echo '[gone](nowhere.md)' >>"$TEST_TMPDIR/copy/docs/trust.md"
if error="$("$TEST_TMPDIR/copy/docs/build" "$TEST_TMPDIR/site" 2>&1)"; then
  echo "a dead link was taken"
  exit 1
fi
grep -q "trust.md.*nowhere.md" <<<"$error" || { echo "the dead link is not named: $error"; exit 1; }

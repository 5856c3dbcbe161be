#!/usr/bin/env bash
# Runs the suites that use time beside two busy loops: a newcomer's machine has other work. Needs `npm run build` and `npm run build:tools`.
# The last line counts what passed.
set -euo pipefail
cd "$(dirname "$0")/.."
suites=(
  'test/channels/(504|slow-reader)\.'
  'test/http/connections\.'
  'test/quota/slow-database\.'
  'test/youtube/upstream-errors\.'
  'test/messages/tcp\.'
  'src/transcripts/single-flight\.'
  'src/platform/youtube/egress/'
)
report=$(mktemp)
busy=()
trap 'kill "${busy[@]}" 2>/dev/null; rm -f "$report"' EXIT
for _ in 1 2; do
  node -e 'for (;;);' &
  busy+=($!)
done
npm run jest --silent -- --selectProjects unit e2e --json --outputFile="$report" --testPathPatterns "${suites[@]}" >/dev/null
count=$(node .ci/passed.mjs "$report")
echo "$count passed beside two busy loops"

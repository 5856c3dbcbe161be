#!/usr/bin/env bash
# Runs the suites that use time beside busy loops: a newcomer's machine has other work. Two of them beside those that measure
# it, and eight beside those that wait for what other processes do. Needs `npm run build` and `npm run build:tools`.
# The last line counts what passed.
set -euo pipefail
cd "$(dirname "$0")/.."
measuring=(
  'test/http/connections\.'
  'test/quota/slow-database\.'
  'test/youtube/upstream-errors\.'
  'test/messages/tcp\.'
  'src/transcripts/delivery/single-flight\.'
  'src/platform/youtube/egress/'
)
waiting=(
  'test/webhooks/'
  'test/auth/tokens\.'
  'test/jobs/(sources|results)\.'
  'test/youtube/whose-fault\.'
  'test/process/service-process\.'
  'test/subscriptions/checks\.'
  'test/channels/(5xx|slow-reader)\.'
)
report=$(mktemp)
busy=()
trap 'kill "${busy[@]}" 2>/dev/null; rm -f "$report"' EXIT
passed=0
run_beside() { # run_beside LOOPS SUITE...
  while ((${#busy[@]} < $1)); do
    node -e 'for (;;);' &
    busy+=($!)
  done
  npm run jest --silent -- --selectProjects unit e2e --json --outputFile="$report" --testPathPatterns "${@:2}" >/dev/null
  local count
  count=$(node .ci/passed.mjs "$report")
  echo "$count passed beside $1 busy loops"
  passed=$((passed + count))
}
run_beside 2 "${measuring[@]}"
run_beside 8 "${waiting[@]}"
echo "$passed passed beside busy loops"

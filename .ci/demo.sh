#!/usr/bin/env bash
# Starts the demo with the given command, checks what it prints, and stops it as Ctrl-C does.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
# In a process group of its own, so that it can be stopped as Ctrl-C in a terminal does it.
set -m
"$@" >"$log" 2>&1 &
demo=$!
set +m
trap 'kill -KILL -- "-$demo" 2>/dev/null || true' EXIT
for _ in $(seq 1 240); do
  grep -q 'Ctrl-C' "$log" && break
  kill -0 "$demo" 2>/dev/null || break
  sleep 0.5
done
cat "$log"
# Beside a build in a second terminal, which must break neither the demo nor its commands.
building=
[ -z "${TRY_PACKAGES:-}" ] || {
  (npm run build --silent && npm run build:tools --silent) &
  building=$!
}
node .ci/try-demo.mjs "$log"
[ -z "$building" ] || wait "$building"
[ -z "${TRY_PACKAGES:-}" ] || node .ci/try-packages.mjs "$log"
kill -INT -- "-$demo"
for _ in $(seq 1 60); do
  kill -0 -- "-$demo" 2>/dev/null || break
  sleep 0.5
done
if kill -0 -- "-$demo" 2>/dev/null || pgrep -f 'channel-transcripts-demo-' >/dev/null; then
  echo 'A process of the demo still runs after Ctrl-C.'
  exit 1
fi
trap - EXIT

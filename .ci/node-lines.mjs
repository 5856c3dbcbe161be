// Prints the lowest release of each line of Node that package.json claims in `engines`, the oldest first: "20.19.0 22.13.0".
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const lowest = engines.node.split(' || ').map((range) => /^\^(\d+\.\d+\.\d+)$/.exec(range)?.[1]);
assert(
  !lowest.includes(undefined),
  `engines must name each release line, as in "^20.19.0 || ^22.13.0": ${engines.node}`,
);
console.log(lowest.join(' '));

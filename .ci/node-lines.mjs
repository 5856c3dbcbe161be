// Prints the release lines of Node that package.json claims in `engines`, the oldest first: "20 22 24 26".
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const lines = engines.node.split(' || ').map((range) => /^\^(\d+)\.\d+\.\d+$/.exec(range)?.[1]);
assert(
  !lines.includes(undefined),
  `engines must name each release line, as in "^20.19.0 || ^22.12.0": ${engines.node}`,
);
console.log(lines.join(' '));

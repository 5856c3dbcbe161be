import { readFileSync } from 'node:fs';
import { breakingChanges } from './compatibility.js';

// Compares two OpenAPI documents: node check.js EARLIER LATER

function read(file: string | undefined): unknown {
  if (file === undefined) throw new Error('Usage: node dist-tools/tools/openapi/check.js EARLIER.json LATER.json');
  return JSON.parse(readFileSync(file, 'utf8'));
}

try {
  const [, , earlier, later] = process.argv;
  const faults = breakingChanges(read(earlier), read(later));
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  if (faults.length > 0) {
    process.stderr.write(`${faults.length} breaking changes. See docs/api-changelog.md for the compatibility rule.\n`);
    process.exitCode = 1;
  } else {
    process.stdout.write('No breaking changes.\n');
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

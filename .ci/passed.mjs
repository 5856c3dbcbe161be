// Prints how many tests passed, from Jest's report. A suite that was skipped or ran nothing is a failure: everything it
// needs was installed before.
import { readFileSync } from 'node:fs';

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = report;
const skipped = numPendingTests + numTodoTests;
if (skipped > 0 || numFailedTests > 0 || numPassedTests === 0) {
  console.error(`${numPassedTests} passed, ${numFailedTests} failed, ${skipped} skipped`);
  process.exit(1);
}
console.log(numPassedTests);

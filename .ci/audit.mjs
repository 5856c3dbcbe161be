// Compares what the service runs on with the advisories of the registry. Its last line starts with one of three words:
//   clean        nothing high or critical is known                          exit code 0
//   vulnerable   something is                                               exit code 1
//   not checked  the registry is unavailable, so nothing is known           exit code 0; 2 with --required
// CI runs it as it is, since a registry that is unavailable is no fault of a change; a release runs it with --required.
import { spawnSync } from 'node:child_process';

const FAILING = ['high', 'critical'];
const PATIENCE = ['--fetch-retries=1', '--fetch-timeout=20000'];
const required = process.argv.includes('--required');

const { stdout, error } = spawnSync('npm', ['audit', '--omit=dev', '--json', ...PATIENCE], {
  encoding: 'utf8',
  maxBuffer: 100_000_000,
});
const report = parse(stdout);
const counts = report?.metadata?.vulnerabilities;
if (counts === undefined) {
  const reason = error?.message ?? report?.statusCode ?? report?.code ?? 'no response';
  console.log(`not checked: the registry returned no advisories (${reason}), so nothing is known.`);
  if (required) process.exitCode = 2;
} else {
  const worst = Object.values(report.vulnerabilities ?? {}).filter(({ severity }) => FAILING.includes(severity));
  for (const { name, severity, range } of worst) console.error(`${name} ${range}: ${severity}`);
  const totals = Object.entries(counts).map(([severity, count]) => `${count} ${severity}`);
  const verdict = worst.length > 0 ? 'vulnerable' : 'clean';
  console.log(`${verdict}: advisories on what the service runs on: ${totals.join(', ')}.`);
  if (worst.length > 0) process.exitCode = 1;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

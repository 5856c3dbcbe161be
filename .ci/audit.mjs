// Holds what the service runs on against the advisories of the registry: one that is high or critical is a failure. A
// registry that cannot be asked is none, since nothing was found out then.
import { spawnSync } from 'node:child_process';

const FAILING = ['high', 'critical'];
const PATIENCE = ['--fetch-retries=1', '--fetch-timeout=20000'];

const { stdout, error } = spawnSync('npm', ['audit', '--omit=dev', '--json', ...PATIENCE], {
  encoding: 'utf8',
  maxBuffer: 100_000_000,
});
const report = parse(stdout);
const counts = report?.metadata?.vulnerabilities;
if (counts === undefined) {
  const reason = error?.message ?? report?.statusCode ?? report?.code ?? 'no answer';
  console.log(`The registry could not be asked for advisories (${reason}): nothing is known, and nothing fails.`);
} else {
  const worst = Object.values(report.vulnerabilities ?? {}).filter(({ severity }) => FAILING.includes(severity));
  for (const { name, severity, range } of worst) console.error(`${name} ${range}: ${severity}`);
  const said = Object.entries(counts).map(([severity, count]) => `${count} ${severity}`);
  console.log(`Advisories on what the service runs on: ${said.join(', ')}.`);
  if (worst.length > 0) process.exitCode = 1;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// A process of its own that takes part in a race for an organization's quota, through the built service.
// Arguments: database URL, organization, key, attempts (0: without end). It prints "ready", waits for a line, and starts.
import { once } from 'node:events';
import { Registry } from 'prom-client';
import { Environment } from '../../dist/modules/config/environment.js';
import { openDatabase } from '../../dist/modules/database/data-source.js';
import { QuotaMetrics } from '../../dist/modules/quota/quota-metrics.js';
import { QuotaService } from '../../dist/modules/quota/quota.service.js';

const [url, organizationId, keyId, attempts] = process.argv.slice(2);
const environment = Object.assign(new Environment(), { DATABASE_URL: url });
const { dataSource, close } = await openDatabase(environment, { as: 'service', entities: [], migrations: [] });
const quota = new QuotaService(dataSource, environment, new QuotaMetrics(new Registry()));
const request = { organizationId, keyId, requestId: 'race', resource: 'UC', required: 1, leaseSeconds: 60 };

// Every connection is open before the start, so that they arrive at once.
await Promise.all(Array.from({ length: 10 }, () => dataSource.query('SELECT pg_sleep(0.05)')));
process.stdout.write('ready\n');
await once(process.stdin, 'data');
if (attempts === '0') await settleWithoutEnd();
const outcomes = await Promise.all(Array.from({ length: Number(attempts) }, attempt));
await close();
process.stdout.write(`${JSON.stringify({ granted: outcomes.filter(Boolean).length })}\n`, () => process.exit(0));

async function attempt() {
  const reservation = await quota.reserve(request);
  if (reservation.granted) await Promise.all([quota.settle(reservation.id, 1), quota.settle(reservation.id, 1)]);
  return reservation.granted;
}

async function settleWithoutEnd() {
  for (;;) {
    await Promise.all(Array.from({ length: 10 }, attempt));
    process.stdout.write('round\n');
  }
}

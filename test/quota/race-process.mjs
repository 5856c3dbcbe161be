// A process of its own that takes part in races for organizations' quotas, through the built service. Argument: database URL.
// It prints "ready", and runs a race for each line that it reads: organization, key, attempts (0: without end).
import { createInterface } from 'node:readline';
import { Registry } from 'prom-client';
import { Environment } from '../../dist/modules/config/environment.js';
import { openDatabase } from '../../dist/modules/database/data-source.js';
import { QuotaMetrics } from '../../dist/modules/quota/quota-metrics.js';
import { QuotaService } from '../../dist/modules/quota/quota.service.js';

const environment = Object.assign(new Environment(), { DATABASE_URL: process.argv[2] });
const { dataSource } = await openDatabase(environment, { as: 'service', entities: [], migrations: [] });
const quota = new QuotaService(dataSource, environment, new QuotaMetrics(new Registry()));

// Every connection is open before the start, so that the attempts arrive at once.
await Promise.all(Array.from({ length: 10 }, () => dataSource.query('SELECT pg_sleep(0.05)')));
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { organizationId, keyId, attempts } = JSON.parse(line);
  const request = { organizationId, keyId, requestId: 'race', resource: 'UC', required: 1, leaseSeconds: 60 };
  if (attempts === 0) await settleWithoutEnd(request);
  const outcomes = await Promise.all(Array.from({ length: attempts }, () => attempt(request)));
  process.stdout.write(`${JSON.stringify({ granted: outcomes.filter(Boolean).length })}\n`);
}

async function attempt(request) {
  const reservation = await quota.reserve(request);
  if (reservation.granted) await Promise.all([quota.settle(reservation.id, 1), quota.settle(reservation.id, 1)]);
  return reservation.granted;
}

async function settleWithoutEnd(request) {
  for (;;) {
    await Promise.all(Array.from({ length: 10 }, () => attempt(request)));
    process.stdout.write('round\n');
  }
}

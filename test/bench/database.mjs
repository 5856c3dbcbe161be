import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { median } from './figures.mjs';
import { makeFolder, makeKey, openDatabase } from './environment.mjs';

/*
 * Measures how many calls per second PostgreSQL can reserve and settle: for many organizations, and for a single one,
 * whose row every call locks. Each call sends the two statements that the service sends. Set BENCH_DATABASE_URL to use a
 * server other than the embedded one.
 */
const HELP = `Usage: npm run build && node test/bench/database.mjs [--seconds N] [--runs N]\n`;
const ORGANIZATIONS = 500;
const VIDEOS = 25;
const LEASE_SECONDS = 60;
const NO_LIMIT = 2_000_000_000;
const LOADS = [
  { organizations: ORGANIZATIONS, connections: 1 },
  { organizations: ORGANIZATIONS, connections: 10 },
  { organizations: ORGANIZATIONS, connections: 40 },
  { organizations: 1, connections: 1 },
  { organizations: 1, connections: 10 },
  { organizations: 1, connections: 40 },
];

async function load(url, { organizations, connections }, customers, seconds) {
  const clients = await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  const latencies = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const work = async (client, index) => {
    for (let call = index; performance.now() < until; call += connections) {
      const { organizationId, keyId } = customers[call % organizations];
      const startedAtMs = performance.now();
      const id = randomUUID();
      const reserved = await client.query('SELECT * FROM quota_reserve_as($1, $2, $3, $4, $5, $6, $7, $8, $9)', [
        ...[id, organizationId, keyId, 'request', 'UC', VIDEOS, LEASE_SECONDS, NO_LIMIT, NO_LIMIT],
      ]);
      if (reserved.rows[0].reservation_id !== id) throw new Error('The reservation was refused.');
      await client.query('SELECT * FROM quota_settle($1, $2, $3, $4)', [id, VIDEOS, NO_LIMIT, NO_LIMIT]);
      latencies.push(performance.now() - startedAtMs);
    }
  };
  try {
    await Promise.all(clients.map(work));
    return { perSecond: (1000 * latencies.length) / (performance.now() - startedAt), medianMs: median(latencies) };
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

async function makeCustomers(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      `INSERT INTO organizations (id, name, plan) SELECT 'bench-' || n, 'Bench', 'pro' FROM generate_series(1, $1) n`,
      [ORGANIZATIONS],
    );
    await client.query(
      `INSERT INTO api_keys (id, organization_id, name, hash, prefix)
       SELECT 'bench-' || n, 'bench-' || n, 'bench', sha256(('bench-' || n)::bytea), 'ctk_bench' FROM generate_series(1, $1) n`,
      [ORGANIZATIONS],
    );
  } finally {
    await client.end();
  }
  return Array.from({ length: ORGANIZATIONS }, (_, index) => ({
    organizationId: `bench-${index + 1}`,
    keyId: `bench-${index + 1}`,
  }));
}

async function main() {
  const { values } = parseArgs({
    options: { seconds: { type: 'string' }, runs: { type: 'string' }, help: { type: 'boolean' } },
  });
  if (values.help) return void process.stdout.write(HELP);
  const [seconds, runs] = [Number(values.seconds ?? 3), Number(values.runs ?? 3)];
  const folder = await makeFolder();
  const database = await openDatabase(folder.path);
  try {
    // This also migrates the schema.
    await makeKey(database.url);
    const customers = await makeCustomers(database.url);
    process.stdout.write('organizations  connections  calls/s  ms per call (medians of the runs)\n');
    for (const scenario of LOADS) {
      const measurements = [];
      for (let count = 0; count < runs; count += 1)
        measurements.push(await load(database.url, scenario, customers, seconds));
      const [perSecond, ms] = [
        median(measurements.map((run) => run.perSecond)),
        median(measurements.map((run) => run.medianMs)),
      ];
      process.stdout.write(
        `${String(scenario.organizations).padStart(13)}  ${String(scenario.connections).padStart(11)}  ${perSecond.toFixed(0).padStart(7)}  ${ms.toFixed(1).padStart(9)}\n`,
      );
    }
  } finally {
    await database.close();
    await folder.remove();
  }
}

await main();

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ADMIN_ROLE, prepareCluster } from '../../../dist/modules/database/embedded/postgres-cluster.js';
import { findFreePort, launchPostmaster, stopPostmaster } from '../../../dist/modules/database/embedded/postmaster.js';

const START_MS_MAX = 60_000;

/**
 * Starts the embedded PostgreSQL as a server of its own, which listens on a port of 127.0.0.1. The user of its URL may do
 * everything.
 */
export async function startServer(dataDir, settings) {
  const cluster = await prepareCluster(dataDir);
  const port = await findFreePort();
  const launch = await launchPostmaster(cluster, { host: '127.0.0.1', port }, settings);
  const url = `postgres://${ADMIN_ROLE}:${cluster.adminPassword}@127.0.0.1:${port}/postgres`;
  const giveUpAt = performance.now() + START_MS_MAX;
  while (!(await answers(url))) {
    if (launch.hasEnded() || performance.now() > giveUpAt) throw new Error(await launch.output());
    await sleep(30);
  }
  return { url, query: (text) => query(url, text), stop: () => stopPostmaster(cluster) };
}

/** Runs one statement on a connection of its own. */
async function query(connectionString, text) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

async function answers(connectionString) {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  return client
    .connect()
    .then(
      () => true,
      () => false,
    )
    .finally(() => client.end().catch(() => undefined));
}

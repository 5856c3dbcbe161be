import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import {
  prepareCluster,
  readLockFile,
  ROLE,
  startPostgres,
  stopPostgres,
} from '../../../dist/modules/database/embedded/postgres-cluster.js';
import { freePort } from '../../../dist-tools/test/harness/free-port.js';

const PASSWORD = 'password-of-the-tests';

/**
 * Starts the embedded PostgreSQL as a server of its own, which listens on a port of 127.0.0.1 and ends with this process. The
 * user of its URL may do everything.
 */
export async function startServer(dataDir, settings) {
  const cluster = await prepareCluster(dataDir);
  const allow = (method) => writeFile(join(cluster.directory, 'pg_hba.conf'), `host all all 127.0.0.1/32 ${method}\n`);
  await allow('trust');
  const port = await freePort();
  await startPostgres(cluster, ['listen_addresses=127.0.0.1', `port=${port}`, ...settings]);
  const url = `postgres://${ROLE}:${PASSWORD}@127.0.0.1:${port}/postgres`;
  await query(url, `ALTER ROLE ${ROLE} PASSWORD '${PASSWORD}'`);
  await allow('scram-sha-256');
  await query(url, 'SELECT pg_reload_conf()');
  const { pid } = await readLockFile(cluster.directory);
  // Tests that are interrupted have no time to stop it in order.
  const quit = () => process.kill(pid, 'SIGQUIT');
  process.once('exit', quit);
  const stop = async () => {
    process.off('exit', quit);
    await stopPostgres(cluster);
  };
  return { url, query: (text) => query(url, text), stop };
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

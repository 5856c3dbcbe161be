import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { prepareCluster } from '../../dist/modules/database/embedded/postgres-cluster.js';
import { startServer } from '../database/programs/server.mjs';

// Durability costs time, and the cluster is deleted after the tests.
const SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=200',
];

/**
 * Starts one PostgreSQL for all end-to-end tests, unless TEST_DATABASE_URL names one whose user may create databases.
 * TEST_CLUSTER is a copy of its files from before the first start, for tests of the embedded PostgreSQL.
 */
export default async function globalSetup() {
  if (process.env.TEST_DATABASE_URL) return;
  const dataDir = await mkdtemp(join(tmpdir(), 'channel-transcripts-tests-'));
  await chmod(dataDir, 0o711);
  const server = await copyAndStart(dataDir).catch(async (error) => {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  process.env.TEST_DATABASE_URL = server.url;
  globalThis.testPostgres = { server, dataDir };
}

async function copyAndStart(dataDir) {
  await prepareCluster(dataDir);
  const copy = join(dataDir, 'copy');
  // Including owners and modes, which cp of Node.js does not preserve.
  await promisify(execFile)('cp', ['-a', join(dataDir, 'postgres'), copy]);
  process.env.TEST_CLUSTER = copy;
  return startServer(dataDir, SETTINGS);
}

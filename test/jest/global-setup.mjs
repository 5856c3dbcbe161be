import { execFile } from 'node:child_process';
import { access, appendFile, chmod, constants, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { prepareCluster } from '../../dist/modules/database/embedded/postgres-cluster.js';
import { migrateDatabase } from '../../dist/modules/database/data-source.js';
import { startServer } from '../database/programs/server.mjs';

// Durability costs time, and the cluster is deleted after the tests.
const SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=200',
  // The default of 4,096 takes milliseconds of the client for each connection.
  'scram_iterations=1',
];

const MEMORY_FOLDER = '/dev/shm';
const MEMORY_BYTES_MIN = 4e9;
const TEMPLATE = 'migrated';

/**
 * Starts one PostgreSQL for all end-to-end tests, unless TEST_DATABASE_URL names one whose user may create databases.
 * TEST_FOLDER is for the files of clusters, in memory where there is enough. TEST_CLUSTER is a copy of the files of this one
 * from before its first start, for tests of the embedded PostgreSQL. TEST_TEMPLATE is a database after all migrations.
 */
export default async function globalSetup() {
  if (process.env.TEST_DATABASE_URL) return;
  const folder = await testFolder();
  process.env.TEST_FOLDER = folder;
  const dataDir = await mkdtemp(join(folder, 'channel-transcripts-tests-'));
  await chmod(dataDir, 0o711);
  const server = await copyAndStart(dataDir).catch(async (error) => {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  process.env.TEST_DATABASE_URL = server.url;
  process.env.TEST_TEMPLATE = TEMPLATE;
  globalThis.testPostgres = { server, dataDir };
}

async function copyAndStart(dataDir) {
  const { directory } = await prepareCluster(dataDir);
  const copy = join(dataDir, 'copy');
  // Including owners and modes, which cp of Node.js does not preserve.
  await promisify(execFile)('cp', ['-a', directory, copy]);
  await appendFile(join(copy, 'postgresql.conf'), 'fsync = off\nshared_buffers = 16MB\n');
  process.env.TEST_CLUSTER = copy;
  const server = await startServer(dataDir, SETTINGS);
  const url = new URL(server.url);
  await server.query(`CREATE DATABASE ${TEMPLATE}`);
  url.pathname = `/${TEMPLATE}`;
  await migrateDatabase(url.href);
  return server;
}

/** Memory, unless it is not mounted or too small, as by default in a container. */
async function testFolder() {
  try {
    await access(MEMORY_FOLDER, constants.W_OK);
    const { bavail, bsize } = await statfs(MEMORY_FOLDER);
    return bavail * bsize < MEMORY_BYTES_MIN ? tmpdir() : MEMORY_FOLDER;
  } catch {
    return tmpdir();
  }
}

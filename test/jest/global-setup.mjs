import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../database/programs/server.mjs';

// Durability costs time, and the cluster is deleted after the tests.
const SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=200',
];

/** Starts one PostgreSQL for all end-to-end tests, unless TEST_DATABASE_URL names one whose user may create databases. */
export default async function globalSetup() {
  if (process.env.TEST_DATABASE_URL) return;
  const dataDir = await mkdtemp(join(tmpdir(), 'channel-transcripts-tests-'));
  await chmod(dataDir, 0o711);
  const server = await startServer(dataDir, SETTINGS).catch(async (error) => {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  process.env.TEST_DATABASE_URL = server.url;
  globalThis.testPostgres = { server, dataDir };
}

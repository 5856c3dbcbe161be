import { rm } from 'node:fs/promises';

/** Stops and removes what the global setup started. */
export default async function globalTeardown() {
  if (!globalThis.testPostgres) return;
  const { postgres, dataDir } = globalThis.testPostgres;
  await postgres.close();
  await rm(dataDir, { recursive: true, force: true });
}

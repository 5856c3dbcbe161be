import { rm } from 'node:fs/promises';

/** Stops and removes what the global setup started. */
export default async function globalTeardown() {
  if (!globalThis.testPostgres) return;
  const { server, dataDir } = globalThis.testPostgres;
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}

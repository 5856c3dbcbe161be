import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../database/test-database.js';
import { Program, temporaryFolder } from './program.js';

const PRELOADED = join(import.meta.dirname, 'programs/loaded-modules.mjs');

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** The packages that a service has loaded when it listens: each loaded file of the bundle names its sources in comments. */
async function loadedPackages(variables: Record<string, string>): Promise<Set<string>> {
  const folder = temporaryFolder();
  const file = join(folder.path, 'modules');
  const service = Program.run('main.js', {
    DATABASE_URL: database.url,
    NODE_OPTIONS: `--import=${PRELOADED}`,
    LOADED_MODULES: file,
    ...variables,
  });
  try {
    await service.url();
    const urls = new Set(readFileSync(file, 'utf8').split('\n'));
    const loaded = [...urls].filter((url) => url.startsWith('file:') && url.includes('/dist/'));
    const sources = loaded.map((url) => readFileSync(new URL(url), 'utf8')).join('\n');
    const names = sources.matchAll(/^\s*\/\/ (?:[\w-]+:)?.*node_modules\/((?:@[^/\n]+\/)?[^/\n]+)/gm);
    return new Set([...names].flatMap(([, name = '']) => name));
  } finally {
    await service.stop();
    folder.remove();
  }
}

const optional = (packages: Set<string>): string[] =>
  // OpenTelemetry's API is loaded always: it does nothing until its SDK is loaded.
  [...packages].filter((name) => /nats|opentelemetry\/(?!api$)/.test(name)).sort();

describe('a service', () => {
  it('loads neither a broker client nor the tracing SDK for messages over TCP without traces', async () => {
    const packages = await loadedPackages({ MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: '0' });
    expect(packages).toContain('@nestjs/core');
    expect(optional(packages)).toEqual([]);
  });

  it('loads only the tracing SDK for traces', async () => {
    const traced = optional(await loadedPackages({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }));
    expect(traced).toContain('@opentelemetry/sdk-trace-node');
    expect(traced.filter((name) => !name.startsWith('@opentelemetry/'))).toEqual([]);
  });

  const failure = async (variables: Record<string, string>): Promise<string> => {
    const service = Program.run('main.js', { DATABASE_URL: database.url, ...variables });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    return service.stderr;
  };

  it('does not start when the configured NATS server is unavailable, and names it without its password', async () => {
    expect(await failure({ MESSAGE_TRANSPORT: 'nats', NATS_URL: 'nats://app:hidden@127.0.0.1:1' })).toMatch(
      /^channel-transcripts: Messages cannot be received at nats:\/\/127\.0\.0\.1:1: [^\n]+\. Change NATS_URL\.\n$/,
    );
    expect(await failure({ MESSAGE_TRANSPORT: 'nats' })).toBe(
      'channel-transcripts: NATS_URL must be set when MESSAGE_TRANSPORT is nats\n',
    );
  });

  it('does not start when the port for messages is in use, and names the variable to change', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    expect(await failure({ MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: String(port) })).toMatch(
      new RegExp(`^channel-transcripts: .*EADDRINUSE.*${port}.* MESSAGE_PORT\\.\\n$`),
    );
    other.close();
  });
});

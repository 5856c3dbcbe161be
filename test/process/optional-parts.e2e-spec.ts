import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../database/test-database.js';
import { Program } from './program.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('a service', () => {
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

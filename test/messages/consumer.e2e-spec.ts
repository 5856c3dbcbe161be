import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { startService } from '../service.js';
import { messageUrl } from './message-client.js';
import { NatsBroker, natsIsInstalled } from './nats-broker.js';

const PROGRAM = join(import.meta.dirname, '../../clients/nest-consumer/dist/main.js');

async function consumer(args: string[], variables: Record<string, string>) {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH: process.env['PATH'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed: Promise<unknown[]> = once(child, 'close');
  const [output, errorOutput, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output, errorOutput };
}

const TRANSPORTS = ['http', 'tcp', ...(natsIsInstalled ? (['nats'] as const) : [])] as const;

describe.each(TRANSPORTS)('the Nest consumer over %s', (transport) => {
  it('prints each video as it arrives, then the counts, and prints a refusal in one line', async () => {
    const broker = transport === 'nats' ? await NatsBroker.start() : undefined;
    const service = await startService({
      environment: {
        ...(transport !== 'http' && { MESSAGE_TRANSPORT: transport }),
        MESSAGE_PORT: 0,
        NATS_URL: broker && [broker.url],
      },
    });
    try {
      const { key } = await service.organization();
      const url = transport === 'http' ? new URL(service.url) : messageUrl(service);
      const addresses = { BASE_URL: service.url, MESSAGE_PORT: url.port, NATS_URL: url.href };
      const variables = { ...addresses, TRANSPORT: transport, API_KEY: key };
      const shown = await consumer(['@harbourlight', '5'], variables);
      expect(shown).toMatchObject({ code: 0, errorOutput: '' });
      const lines = shown.output.trimEnd().split('\n');
      expect(lines).toHaveLength(7);
      expect(lines[0]).toBe('Harbour Light Workshop (UCharbourlight__________)');
      expect(lines).toContain('  hl-dinghy__  fetched');
      expect(lines.at(-1)).toBe('3 of 5 succeeded');
      const refused = await consumer(['@harbourlight', '0'], variables);
      expect(refused).toMatchObject({ code: 1, output: '' });
      expect(refused.errorOutput).toMatch(/^invalid_request: limit must be .+\n$/);
    } finally {
      await service.close();
      await broker?.close();
    }
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { freePort } from '../harness/free-port.js';
import { startService } from '../harness/service.js';
import { messageUrl } from './message-client.js';

const CONSUMER = join(import.meta.dirname, '../../clients/nest-consumer');
const PROGRAM = join(CONSUMER, 'dist/main.js');

async function consumer(args: string[], variables: Record<string, string>) {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH: process.env['PATH'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed: Promise<unknown[]> = once(child, 'close');
  const [output, errorOutput, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output, errorOutput };
}

describe('the Nest consumer over HTTP', () => {
  it('names the address that it cannot reach, without the key', async () => {
    const port = await freePort();
    const variables = { BASE_URL: `http://127.0.0.1:${port}`, API_KEY: 'ctk_a-key' };
    const { code, output, errorOutput } = await consumer(['@harbourlight', '5'], variables);
    expect([code, output, errorOutput]).toEqual([
      1,
      '',
      `no_response: GET http://127.0.0.1:${port}/channels/%40harbourlight/transcripts?limit=5: fetch failed (ECONNREFUSED)\n`,
    ]);
  });
});

describe('the Nest consumer over TCP', () => {
  it('prints each video as it arrives, then the counts, and prints a refusal in one line', async () => {
    const service = await startService({ environment: { MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0 } });
    try {
      const { key } = await service.organization();
      const variables = { TRANSPORT: 'tcp', MESSAGE_PORT: messageUrl(service).port, API_KEY: key };
      const shown = await consumer(['@harbourlight', '5'], variables);
      expect(shown).toMatchObject({ code: 0, errorOutput: '' });
      const lines = shown.output.trimEnd().split('\n');
      expect(lines).toHaveLength(7);
      expect(lines[0]).toBe('Harbour Light Workshop (UCharbourlight__________)');
      expect(lines).toContain('  hl-dinghy__  fetched');
      const [, shownLines = ''] = /```text\n([^]*?)```/.exec(readFileSync(join(CONSUMER, 'README.md'), 'utf8')) ?? [];
      expect(shownLines.trimEnd().split('\n').sort()).toEqual([...lines].sort());
      expect(lines.at(-1)).toBe('3 of 5 succeeded');
      const refused = await consumer(['@harbourlight', '0'], variables);
      expect(refused).toMatchObject({ code: 1, output: '' });
      expect(refused.errorOutput).toMatch(/^invalid_request: limit must be .+\n$/);
    } finally {
      await service.close();
    }
  });
});

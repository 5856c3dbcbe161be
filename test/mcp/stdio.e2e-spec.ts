import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { readLockFile } from '../../src/database/embedded/postgres-cluster.js';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { until } from '../harness/until.js';
import { temporaryFolder } from '../process/program.js';

const CLI = join(import.meta.dirname, '../../dist/cli.js');
const folder = temporaryFolder();
let youtube: FakeYoutube;
beforeAll(async () => {
  youtube = await startFakeYoutube();
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await youtube.close();
  folder.remove();
});

const variables = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  DATA_DIR: folder.path,
  YOUTUBE_BASE_URL: youtube.url,
  LOG_LEVEL: 'debug',
});
const databaseProcess = async (): Promise<number | undefined> =>
  (await readLockFile(join(folder.path, 'postgres'))).pid;

/** What the transport reports: text on standard output that is no message, and the end of the program. */
const faults: string[] = [];
const clients: Client[] = [];

async function connect(mode: 'legacy' | { pin: string }): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [CLI, 'mcp'], env: variables(), stderr: 'ignore' },
  });
  clients.push(client);
  await client.connect(transport);
  client.onerror = ({ message }) => void faults.push(message);
  return client;
}

describe('the command mcp', () => {
  it('serves the tools to clients of both protocols, which share a data directory, without a key', async () => {
    const [older, newer] = await Promise.all([connect('legacy'), connect({ pin: '2026-07-28' })]);
    for (const client of [older, newer]) {
      expect(client.getServerVersion()).toMatchObject({ name: 'channel-transcripts' });
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toContain('search_channel_transcripts');
      const refused = await client.callTool({ name: 'get_video_transcript', arguments: {} });
      expect(refused).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^invalid_request: /) }],
      });
      const found = await client.callTool({
        name: 'search_channel_transcripts',
        arguments: { channel: '@harbourlight', query: 'LEAVE, because reefing', limit: 50 },
      });
      expect(found.structuredContent).toMatchObject({ matchesTotal: 1, matches: [{ videoId: 'hl-island__' }] });
      // The other one goes on.
      await client.close();
    }
    expect(faults).toEqual([]);
    expect(await databaseProcess()).toBeUndefined();
  });

  it('runs the archive jobs that it starts', async () => {
    const client = await connect('legacy');
    const started = await client.callTool({
      name: 'start_archive_job',
      arguments: { channel: '@tidewater', limit: 2 },
    });
    const { id } = started.structuredContent as { id: string };
    await until(async () => {
      const { structuredContent } = await client.callTool({ name: 'get_job', arguments: { id } });
      return (structuredContent as { state: string }).state === 'completed';
    });
    await client.close();
  });

  it.each(['SIGTERM', 'SIGINT', 'the end of its input'] as const)(
    'ends with 0 and stops the database at %s, and has written nothing but messages',
    async (end) => {
      const child = spawn(process.execPath, [CLI, 'mcp'], { env: variables(), stdio: ['pipe', 'pipe', 'pipe'] });
      const [ended, errors] = [once(child, 'close'), text(child.stderr)];
      const lines: string[] = [];
      const output = createInterface(child.stdout).on('line', (line) => lines.push(line));
      const hold = youtube.hold({ kind: 'browse' });
      const call = { name: 'list_channel_uploads', arguments: { channel: '@tidewater' } };
      child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\nno message\n');
      await once(output, 'line');
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: call })}\n`);
      await hold.arrived;
      if (end === 'the end of its input') child.stdin.end();
      else child.kill(end);
      expect({ ended: await ended, errors: await errors }).toMatchObject({ ended: [0, null] });
      hold.release();
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
        expect.objectContaining({ jsonrpc: '2.0', id: 1, result: expect.anything() }),
      ]);
      expect(await databaseProcess()).toBeUndefined();
    },
  );
});

import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { freePort } from '../../../free-port.js';
import { Program } from '../../harness/program.js';
import { Service } from '../../harness/service.js';
import { settledState } from '../../harness/settled.js';
import { at } from '../../harness/transcripts.js';
import { until } from '../../harness/until.js';
import { atMost, equal, type Check, type ChaosRun } from '../../chaos-run.js';

const SUBJECT = 'channels.transcripts';
const MESSAGES = 100_000;
const MESSAGES_SHORT = 5_000;
const BATCH = 1_000;
const HEAP_GROWTH_MB_MAX = 16;
const LOG_KB_MAX = 200;
/** Messages are ordered: one behind a flood waits for it, or is refused with 503. */
const RESPONSE_SECONDS_MAX = 30;

export interface FloodEnd {
  rows: (string | number)[][];
  checks: Check[];
}

/** Messages without a key over NATS, published as fast as possible by a client that reads no replies. */
export async function natsFlood(chaosRun: ChaosRun, platformUrl: string): Promise<FloodEnd> {
  if (spawnSync('nats-server', ['--version']).error)
    return { rows: [['over NATS', 'left out: nats-server is not installed', '', '']], checks: [] };
  const { folder, database, short } = chaosRun;
  const port = await freePort();
  const file = join(folder, 'nats.conf');
  await writeFile(file, `host: "127.0.0.1"\nport: ${port}\n`);
  const broker = Program.start('nats-server', ['--config', file], { logFile: join(folder, 'nats.log') });
  let service: Service | undefined;
  const url = `nats://127.0.0.1:${port}`;
  const client = await connected(url);
  try {
    service = await Service.start(folder, {
      DATABASE_URL: await database.create(),
      YOUTUBE_BASE_URL: platformUrl,
      MESSAGE_TRANSPORT: 'nats',
      NATS_URL: url,
    });
    const customer = await service.customer();
    const request = async (data: object): Promise<unknown> => {
      const packet = { id: 'one', pattern: SUBJECT, data };
      const response: unknown = (await client.request(SUBJECT, JSON.stringify(packet), { timeout: 30_000 })).json();
      return at(response, 'err', 'error', 'code') ?? at(response, 'response', 'type');
    };
    const publish = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index += 1) {
        const garbage = index % 10 === 9;
        const packet = JSON.stringify({ id: String(index), pattern: SUBJECT, data: { id: '@tidewater' } });
        client.publish(SUBJECT, garbage ? '1' : packet, { reply: 'nobody.listens' });
        if (index % BATCH === BATCH - 1) await client.flush();
      }
      await client.flush();
    };
    const count = short ? MESSAGES_SHORT : MESSAGES;
    await publish(count / 10);
    await until('The service replies after a first tenth', async () => (await request({})) !== undefined);
    const before = await service.resources();
    const logBefore = (await service.log()).length;
    const startedAtMs = performance.now();
    await publish(count);
    const floodedAtMs = performance.now();
    let responded: unknown;
    await until(
      'A message with a key has a reply',
      async () => (responded = await request({ apiKey: customer.key, id: '@emptyslip' })) === 'channel',
      RESPONSE_SECONDS_MAX * 2_000,
    ).catch(() => undefined);
    const waitedSeconds = (performance.now() - floodedAtMs) / 1000;
    const seconds = (floodedAtMs - startedAtMs) / 1000;
    const after = await service.resources();
    const logKilobytes = ((await service.log()).length - logBefore) / 1024;
    return {
      rows: [
        [
          'without a key, over NATS',
          count,
          `${(count / seconds).toFixed(0)} a second`,
          `${logKilobytes.toFixed(0)} KB`,
        ],
      ],
      checks: [
        equal('over NATS, behind the flood: a message with a key has a reply', responded, 'channel'),
        atMost('over NATS, behind the flood: time to the reply', waitedSeconds, RESPONSE_SECONDS_MAX, 's'),
        atMost(
          'over NATS: heap growth since the first tenth',
          (after.heapUsed - before.heapUsed) / 2 ** 20,
          HEAP_GROWTH_MB_MAX,
          'MB',
        ),
        atMost('over NATS: log output', logKilobytes, LOG_KB_MAX * Math.max(1, seconds / 10), 'KB'),
        ...(await settledState(service, 'the service on NATS')),
        equal('over NATS: the service exits with 0', await service.stop(), { code: 0, signal: null }),
      ],
    };
  } finally {
    await service?.stop('SIGKILL').catch(() => undefined);
    await client.close();
    await broker.stop('SIGKILL');
  }
}

async function connected(url: string): Promise<Awaited<ReturnType<typeof connect>>> {
  let client: Awaited<ReturnType<typeof connect>> | undefined;
  await until('NATS responds', async () => (client = await connect({ servers: url, reconnect: false })) !== undefined);
  if (!client) throw new Error('NATS answered.');
  return client;
}

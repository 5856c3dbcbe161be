import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { request as httpRequest } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { CACHE_FORMAT } from '../../src/transcripts/cache/keyed-codec.js';
import { RepeatedBodies } from '../../src/transcripts/response/repeated-bodies.js';
import { ResponseMemory } from '../../src/transcripts/response/response-memory.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';

let service: TestService;
let cache: Cache;
let memory: ResponseMemory;

beforeAll(async () => {
  service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
  cache = service.app.get(CACHE_MANAGER);
  memory = service.app.get(ResponseMemory);
});
afterAll(() => service.close());
afterEach(async () => {
  jest.restoreAllMocks();
  await until(() => memory.heldBytes === 0);
});

interface Received {
  headers: Record<string, unknown>;
  bytes: Buffer;
  /** Whether the body was a stored one. */
  repeated: boolean;
}

/** Sends a request; `leaveAfterBytes` disconnects after as many bytes. */
async function call(
  path: string,
  key: string,
  headers: Record<string, string> = {},
  leaveAfterBytes = Infinity,
): Promise<Received> {
  const find = jest.spyOn(RepeatedBodies.prototype, 'find');
  const [response, bytes] = await new Promise<[Received['headers'], Buffer]>((resolve, reject) => {
    const request = httpRequest(
      service.url + path,
      { headers: { Authorization: `Bearer ${key}`, ...headers }, agent: false },
      (incoming) => {
        const chunks: Buffer[] = [];
        let received = 0;
        incoming.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          received += chunk.length;
          if (received > leaveAfterBytes) incoming.destroy();
        });
        incoming.on('error', () => undefined);
        incoming.on('close', () => resolve([{ ...incoming.headers }, Buffer.concat(chunks)]));
      },
    );
    request.on('error', reject);
    request.end();
  });
  const repeated = find.mock.results.at(-1)?.value !== undefined;
  find.mockRestore();
  return { headers: response, bytes, repeated };
}

const entries = async (outcome: string): Promise<number> =>
  sumOf(await scrape(service), 'ct_entries_total', { outcome });
const logged = (): { counts: unknown; left?: boolean }[] =>
  service.logs.flatMap((line) => {
    const parsed = JSON.parse(line) as { event?: string; path?: string; counts: unknown };
    return parsed.event === 'request' && parsed.path?.endsWith('/transcripts') ? [parsed] : [];
  });

describe('the response of a repeated call whose videos are all cached', () => {
  it.each([
    ['JSON', {}],
    ['JSON with gzip', { 'Accept-Encoding': 'gzip' }],
    ['NDJSON', { Accept: 'application/x-ndjson' }],
    ['NDJSON with gzip', { Accept: 'application/x-ndjson', 'Accept-Encoding': 'gzip' }],
  ])('is stored once, with the same bytes, headers, counts and charge (%s)', async (_name, headers) => {
    const { key } = await service.organization();
    // Has transcripts, and failures that are listed or cached.
    const path = '/channels/@harbourlight/transcripts?limit=16';
    const { summary } = (await service.get(path, key)).body;
    const used = (await service.get('/usage', key)).body.used as number;
    const before = await entries('cached');
    const calls: Received[] = [];
    for (let index = 0; index < 3; index++) calls.push(await call(path, key, headers));
    expect(calls.map(({ repeated }) => repeated)).toEqual([false, true, true]);
    const [recorded, ...others] = calls;
    const fixed = (received: Received | undefined): unknown => ({
      ...received?.headers,
      ...{ date: '', 'x-request-id': '', 'x-quota-reset': '' },
      // The seconds until the month ends.
      ratelimit: String(received?.headers['ratelimit']).replace(/;t=\d+/g, ''),
    });
    for (const other of others) {
      expect(recorded && other.bytes.equals(recorded.bytes)).toBe(true);
      expect(fixed(other)).toEqual(fixed(recorded));
    }
    const isGzip = recorded?.headers['content-encoding'] === 'gzip';
    const text = (isGzip ? gunzipSync(recorded.bytes) : (recorded?.bytes ?? '')).toString();
    const counts = { ...summary, cached: summary.succeeded, fetched: 0 };
    expect(text.includes(`"summary":${JSON.stringify(counts)}`)).toBe(true);
    expect(logged().slice(-3)).toMatchObject(calls.map(() => ({ counts })));
    expect((await entries('cached')) - before).toBe(3 * summary.succeeded);
    expect((await service.get('/usage', key)).body).toMatchObject({ used, reserved: 0 });
  });

  it('is not repeated in other languages, of another length, or after the list was read again', async () => {
    const { key } = await service.organization();
    const path = '/channels/@tidewater/transcripts?limit=3';
    for (let calls = 0; calls < 2; calls++) await call(path, key);
    expect((await call(path, key)).repeated).toBe(true);
    expect((await call(`${path}&languages=en,de`, key)).repeated).toBe(false);
    expect((await call('/channels/@tidewater/transcripts?limit=2', key)).repeated).toBe(false);
    const { channel } = (await service.get(path, key)).body as { channel: { id: string } };
    await cache.del(`${CACHE_FORMAT}:uploads:${channel.id}`);
    expect((await call(path, key)).repeated).toBe(false);
  });

  it('is charged nothing for a transcript that has expired meanwhile, and everything once the list was read again', async () => {
    const { key } = await service.organization();
    const path = '/channels/@bench-3x30/transcripts';
    const { results, channel } = (await service.get(path, key)).body as {
      results: { videoId: string }[];
      channel: { id: string };
    };
    for (let calls = 0; calls < 2; calls++) await call(path, key);
    for (const { videoId } of results) await cache.del(`${CACHE_FORMAT}:transcript:${videoId}:`);
    expect((await call(path, key)).repeated).toBe(true);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 3, reserved: 0 });
    await cache.del(`${CACHE_FORMAT}:uploads:${channel.id}`);
    expect((await service.get(path, key)).body.summary).toMatchObject({ cached: 0, fetched: 3 });
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 6, reserved: 0 });
  });

  it('is not stored when its reader leaves, and holds no memory afterwards', async () => {
    const { key } = await service.organization();
    const path = '/channels/@bench-100x1500/transcripts?limit=100';
    await service.get(path, key);
    const lines = logged().length;
    const left = await call(path, key, {}, 200_000);
    await until(() => logged().length > lines);
    expect(logged().at(-1)).toMatchObject({ left: true, counts: { failed: 0, fetched: 0 } });
    await until(() => memory.heldBytes === 0);
    const whole = await call(path, key);
    expect([left.repeated, whole.repeated, (await call(path, key)).repeated]).toEqual([false, false, true]);
    await call(path, key, {}, 200_000);
    await until(() => memory.heldBytes === 0);
  });

  it('is streamed while the response memory is in use', async () => {
    const { key } = await service.organization();
    const path = '/channels/@bench-4x40/transcripts';
    await service.get(path, key);
    await call(path, key);
    const known = await call(path, key);
    expect(known.repeated).toBe(true);
    const others = Buffer.alloc(memory.bytesMax / 2);
    memory.add(others);
    const busy = await call(path, key);
    memory.release(others);
    expect([busy.repeated, busy.bytes.equals(known.bytes)]).toEqual([false, true]);
  });
});

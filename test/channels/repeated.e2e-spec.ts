import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { request as httpRequest } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { CACHE_FORMAT } from '../../src/transcripts/cache/keyed-codec.js';
import { AssembledBodies } from '../../src/transcripts/response/assembled-bodies.js';
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
  /** Whether the body was an assembled one. */
  assembled: boolean;
}

/** Sends a request; `leaveAfterBytes` disconnects after as many bytes. */
async function call(
  path: string,
  key: string,
  headers: Record<string, string> = {},
  leaveAfterBytes = Infinity,
): Promise<Received> {
  const find = jest.spyOn(AssembledBodies.prototype, 'find');
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
  const assembled = find.mock.results.at(-1)?.value !== undefined;
  find.mockRestore();
  return { headers: response, bytes, assembled };
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
  ])('is assembled once, with the same bytes, headers, counts and charge (%s)', async (_name, headers) => {
    const { key } = await service.organization();
    // Has transcripts, and failures that are listed or cached.
    const path = '/channels/@harbourlight/transcripts?limit=16';
    const { summary } = (await service.get(path, key)).body;
    const used = (await service.get('/usage', key)).body.used as number;
    const before = await entries('cached');
    const calls = [];
    for (let index = 0; index < 4; index++) calls.push(await call(path, key, headers));
    expect(calls.map(({ assembled }) => assembled)).toEqual([false, false, true, true]);
    const [first, recorded, ...others] = calls;
    const textOf = (received: Received | undefined): string | undefined =>
      (received?.headers['content-encoding'] === 'gzip' ? gunzipSync(received.bytes) : received?.bytes)?.toString();
    // Where the blocks of a streamed gzip body begin depends on when its texts were ready.
    expect(textOf(recorded) === textOf(first)).toBe(true);
    const fixed = (received: Received | undefined): unknown => ({
      ...received?.headers,
      ...{ date: '', 'x-request-id': '', 'x-quota-reset': '' },
    });
    for (const other of others) {
      expect(recorded && other.bytes.equals(recorded.bytes)).toBe(true);
      expect(fixed(other)).toEqual(fixed(first));
    }
    const counts = { ...summary, cached: summary.succeeded, fetched: 0 };
    expect(textOf(first)?.includes(`"summary":${JSON.stringify(counts)}`)).toBe(true);
    expect(logged().slice(-4)).toMatchObject(calls.map(() => ({ counts })));
    expect((await entries('cached')) - before).toBe(4 * summary.succeeded);
    expect((await service.get('/usage', key)).body).toMatchObject({ used, reserved: 0 });
    expect(sumOf(await scrape(service), 'ct_assembled_bodies_bytes')).toBeGreaterThan(0);
  });

  it('is not assembled when an outcome or a text is missing: the video is fetched again and charged', async () => {
    const { key } = await service.organization();
    const path = '/channels/@bench-3x30/transcripts';
    const { results } = (await service.get(path, key)).body as { results: { videoId: string }[] };
    const [{ videoId } = { videoId: '' }] = results;
    for (const suffix of ['', ':json']) {
      for (let calls = 0; calls < 2; calls++) await call(path, key);
      const known = await call(path, key);
      expect(known.assembled).toBe(true);
      await cache.del(`${CACHE_FORMAT}:transcript:${videoId}:${suffix}`);
      const used = (await service.get('/usage', key)).body.used as number;
      const { bytes, assembled } = await call(path, key);
      expect(assembled).toBe(false);
      expect(JSON.parse(bytes.toString())).toMatchObject({ summary: { cached: 2, fetched: 1 } });
      expect((await service.get('/usage', key)).body).toMatchObject({ used: used + 1, reserved: 0 });
      // The entry is another one, although its content is the same.
      const after = await call(path, key);
      expect([after.assembled, after.bytes.equals(known.bytes)]).toEqual([false, true]);
    }
  });

  it('counts the entries that were sent when the client disconnects, and holds no memory afterwards', async () => {
    const { key } = await service.organization();
    const path = '/channels/@bench-100x1500/transcripts?limit=100';
    await service.get(path, key);
    for (let calls = 0; calls < 2; calls++) await call(path, key);
    const { bytes } = await call(path, key);
    const before = { cached: await entries('cached'), lines: logged().length };
    const left = await call(path, key, {}, 200_000);
    expect([left.assembled, left.bytes.length < bytes.length / 2]).toEqual([true, true]);
    await until(() => logged().length > before.lines);
    const line = logged().at(-1) as { left: boolean; counts: { total: number; cached: number } };
    expect(line).toMatchObject({ left: true, counts: { failed: 0, fetched: 0 } });
    expect(line.counts.total).toBeLessThan(100);
    expect(line.counts.total).toBeGreaterThan(0);
    expect((await entries('cached')) - before.cached).toBe(line.counts.total);
    await until(() => memory.heldBytes === 0);
  });

  it('is streamed as before while the response memory is in use', async () => {
    const { key } = await service.organization();
    const path = '/channels/@bench-4x40/transcripts';
    await service.get(path, key);
    for (let calls = 0; calls < 2; calls++) await call(path, key);
    const known = await call(path, key);
    expect(known.assembled).toBe(true);
    const others = Buffer.alloc(memory.bytesMax / 2);
    memory.add(others);
    const busy = [await call(path, key), await call(path, key), await call(path, key)];
    memory.release(others);
    expect(busy.map(({ assembled, bytes }) => [assembled, bytes.equals(known.bytes)])).toEqual(
      busy.map(() => [false, true]),
    );
  });
});

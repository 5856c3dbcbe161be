import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { stallTable } from '../database/lock-table.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: { REQUEST_DEADLINE_SECONDS: 5, UPSTREAM_RETRIES: 0 } });
});
afterAll(() => service.close());

describe('at the deadline of a call', () => {
  const call = async (path: string): Promise<{ response: ServiceResponse; key: string }> => {
    const { key } = await service.organization();
    return { response: await service.get(path, key), key };
  };
  const usage = async (key: string): Promise<unknown> => (await service.get('/usage', key)).body;

  // Three calls that wait for their deadline together: each is held before the next one starts.
  let fetching: Awaited<ReturnType<typeof call>>;
  let listing: Awaited<ReturnType<typeof call>>;
  let resolving: Awaited<ReturnType<typeof call>>;
  beforeAll(async () => {
    const held: Promise<Awaited<ReturnType<typeof call>>>[] = [];
    for (const [match, path] of [
      [{ kind: 'timedtext', path: 'fs-229' }, '/channels/@fogsignalradio/transcripts?limit=3'],
      [{ kind: 'browse-uploads' }, '/channels/@3-videos-no-5/transcripts'],
      [{ kind: 'resolve' }, '/channels/@3-videos-no-6/transcripts'],
    ] as const) {
      const hold = service.fakeYoutube.hold(match);
      held.push(call(path));
      await hold.arrived;
    }
    [fetching, listing, resolving] = (await Promise.all(held)) as [typeof fetching, typeof listing, typeof resolving];
    await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
  });

  it('a call whose channel is still being requested is 504, and that request is aborted', async () => {
    for (const { response, key } of [listing, resolving]) {
      expect([response.status, response.body?.error.code]).toEqual([504, 'upstream_timeout']);
      expect(response.body.error.retryable).toBe(true);
      expect(await usage(key)).toMatchObject({ used: 0, reserved: 0 });
    }
  });

  it('fetched transcripts are returned and charged, the others are upstream_timeout and free', async () => {
    const { response, key } = fetching;
    expect(response.status).toBe(200);
    expect(response.body.summary).toEqual({ total: 3, succeeded: 2, failed: 1, cached: 0, fetched: 2 });
    expect(response.body.results[1].error).toMatchObject({ code: 'upstream_timeout', retryable: true });
    expect(await usage(key)).toMatchObject({ used: 2, reserved: 0 });
  });

  it('a database that stalls during the settlement does not hold back the summary', async () => {
    service.fakeYoutube.reset();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = call('/channels/@2-videos-no-3/transcripts?limit=1');
    await hold.arrived;
    const release = await stallTable(service.databaseUrl, 'quota_reservations');
    // The lock is released only after the response.
    const { body } = (await running).response;
    await release();
    hold.release();
    expect(body.results[0].error.code).toBe('upstream_timeout');
    expect(body.summary).toMatchObject({ total: 1, failed: 1 });
  });
});

describe('a call that the pace cannot serve before its deadline', () => {
  let paced: TestService;

  beforeAll(async () => {
    paced = await startService({ environment: { REQUEST_DEADLINE_SECONDS: 20, UPSTREAM_TIMEDTEXT_PER_MINUTE: 2 } });
  });
  afterAll(() => paced.close());

  it('fails the videos behind at once as upstream_busy, free and with the time, and the next call continues', async () => {
    const { key } = await paced.organization();
    const path = '/channels/@4-videos-no-5/transcripts';
    const first = await paced.get(path, key);
    expect(first.status).toBe(200);
    expect(first.body.summary).toEqual({ total: 4, succeeded: 1, failed: 3, cached: 0, fetched: 1 });
    const failed = first.body.results.filter((entry: { ok: boolean }) => !entry.ok);
    for (const { error } of failed) {
      expect(error).toMatchObject({ code: 'upstream_busy', retryable: true, retryAfterSeconds: expect.any(Number) });
      expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(2);
    }
    expect(paced.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(1);
    expect((await paced.get('/usage', key)).body).toMatchObject({ used: 1, reserved: 0 });
    const second = await paced.get(path, key);
    expect(second.body.summary).toMatchObject({ total: 4, cached: 1 });
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: { REQUEST_DEADLINE_SECONDS: 2, UPSTREAM_RETRIES: 0 } });
});
afterAll(() => service.close());
afterEach(() => service.fakeYoutube.reset());

describe('at the deadline of a call', () => {
  it.each(['resolve', 'browse-uploads'] as const)(
    'a call whose channel is still being requested (%s) is 504, and that request is aborted',
    async (kind) => {
      const { key } = await service.organization();
      service.fakeYoutube.hold({ kind });
      const response = await service.get('/channels/@bench-3x5/transcripts', key);
      expect([response.status, response.body?.error.code]).toEqual([504, 'upstream_timeout']);
      expect(response.body.error.retryable).toBe(true);
      await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
      expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
    },
  );

  it('fetched transcripts are returned and charged, the others are upstream_timeout and free', async () => {
    const { key } = await service.organization();
    service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-229' });
    const answer = await service.get('/channels/@fogsignalradio/transcripts?limit=3', key);
    expect(answer.status).toBe(200);
    expect(answer.body.summary).toEqual({ total: 3, succeeded: 2, failed: 1, cached: 0, fetched: 2 });
    expect(answer.body.results[1].error).toMatchObject({ code: 'upstream_timeout', retryable: true });
    await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 2, reserved: 0 });
  });
});

describe('a call that the pace cannot serve before its deadline', () => {
  let paced: TestService;

  beforeAll(async () => {
    paced = await startService({ environment: { REQUEST_DEADLINE_SECONDS: 3, UPSTREAM_TIMEDTEXT_PER_MINUTE: 10 } });
  });
  afterAll(() => paced.close());

  it('fails the videos behind at once as upstream_busy, free and with the time, and the next call continues', async () => {
    const { key } = await paced.organization();
    const path = '/channels/@bench-4x5/transcripts';
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

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

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;
let key: string;

beforeAll(async () => {
  service = await startService({ environment: { UPSTREAM_RETRIES: 0 } });
  ({ key } = await service.organization());
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

describe('a channel that the platform refuses to return', () => {
  it('is requested again as soon as the platform responds', async () => {
    const { key } = await service.organization();
    service.fakeYoutube.setFaults({ kind: '500', match: { kind: ['resolve', 'browse'] } });
    expect((await service.get('/channels/@2-videos-no-7/transcripts', key)).status).toBe(502);
    service.fakeYoutube.setFaults();
    expect((await service.get('/channels/@2-videos-no-7/transcripts', key)).status).toBe(200);
  });

  it.each([
    ['500', 'upstream_failure'],
    ['reset', 'upstream_failure'],
    ['truncated', 'upstream_failure'],
    ['not-json', 'upstream_failure'],
    ['429', 'upstream_blocked'],
    ['captcha', 'upstream_blocked'],
    ['consent', 'upstream_blocked'],
    ['empty', 'upstream_blocked'],
  ] as const)('(%s) is 502 %s, retryable, and costs nothing', async (kind, code) => {
    service.fakeYoutube.setFaults({ kind, match: { kind: ['resolve', 'browse'] } });
    // A different channel each time, since earlier results are cached.
    const response = await service.get(
      `/channels/@${kind.length + 3}-videos-no-${code.length + kind.charCodeAt(0)}/transcripts?limit=3`,
      key,
    );
    expect([response.status, response.body?.error.code]).toEqual([502, code]);
    // The first refusal pauses the egress, and the response has the rest of that pause too.
    expect(response.headers['retry-after'] !== undefined).toBe(code === 'upstream_blocked');
    expect(response.body.error).toMatchObject({ retryable: true, requestId: response.headers['x-request-id'] });
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
  });
});

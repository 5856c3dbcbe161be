import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

const FETCHES = { kind: ['player', 'reel', 'timedtext'] } as const;

describe('a call that could exceed the quota', () => {
  it('is refused in advance: nothing is fetched, charged or still reserved', async () => {
    const { key } = await service.organization({ monthlyLimit: 7 });
    const response = await service.get('/channels/@fogsignalradio/transcripts?limit=25', key);
    expect(response.status).toBe(402);
    const now = new Date();
    expect(response.body.error).toEqual({
      code: 'plan_limit_exceeded',
      message:
        'This request may use up to 25 transcripts of the monthly quota, and 7 of 7 remain. Retry with limit=7 or lower.',
      retryable: false,
      docs: '/docs/errors#plan_limit_exceeded',
      requestId: response.headers['x-request-id'],
      limit: 7,
      used: 0,
      reserved: 0,
      required: 25,
      resetAt: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString(),
      scope: 'organization',
    });
    expect(service.fakeYoutube.requests.count(FETCHES)).toBe(0);
    expect((await service.get('/usage', key)).body).toMatchObject({ limit: 7, used: 0, reserved: 0, remaining: 7 });
  });

  it('is granted with the limit that the message suggests, and with no larger one', async () => {
    const { key } = await service.organization({ monthlyLimit: 3 });
    // The newest two can have no transcript, so five entries cost three.
    const refused = await service.get('/channels/@harbourlight/transcripts?limit=20', key);
    expect(refused.body.error.message).toContain('Retry with limit=5 or lower');
    expect((await service.get('/channels/@harbourlight/transcripts?limit=6', key)).status).toBe(402);
    const granted = await service.get('/channels/@harbourlight/transcripts?limit=5', key);
    expect(granted.status).toBe(200);
    expect(granted.body.summary.fetched).toBe(3);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 3, remaining: 0 });
  });

  it('is refused by the limit of its key when less remains for that, and names the limit that fits', async () => {
    const { id: organizationId, key: unlimited } = await service.organization({ monthlyLimit: 100 });
    const keys = service.app.get(ApiKeysService);
    const { id, key } = await keys.issue({ organizationId, monthlyLimit: 3 });
    const refused = await service.get('/channels/@20-videos-no-402/transcripts?limit=20', key);
    expect([refused.status, refused.body.error]).toMatchObject([
      402,
      { code: 'plan_limit_exceeded', scope: 'key', limit: 3, used: 0, reserved: 0 },
    ]);
    expect(refused.headers).toMatchObject({ 'x-quota-limit': '3', 'x-quota-remaining': '3' });
    const [, fitting = ''] =
      /of the monthly limit of this API key, and 3 of 3 remain\. Retry with limit=(\d+) or lower\.$/.exec(
        refused.body.error.message as string,
      ) ?? [];
    const granted = await service.get(`/channels/@20-videos-no-402/transcripts?limit=${fitting}`, key);
    expect([granted.status, granted.body.summary.fetched]).toEqual([200, 3]);

    const { key: rotated } = await keys.rotate(id, 24);
    for (const one of [key, rotated]) {
      expect((await service.get('/usage', one)).body).toMatchObject({
        limit: 100,
        used: 3,
        remaining: 97,
        key: { limit: 3, used: 3, reserved: 0, remaining: 0 },
      });
      expect((await service.get('/channels/@20-videos-no-402/transcripts?limit=20', one)).status).toBe(402);
    }
    expect((await service.get('/channels/@20-videos-no-402/transcripts?limit=20', unlimited)).status).toBe(200);
    expect((await service.get('/usage', unlimited)).body).not.toHaveProperty('key');
  });

  it('does not count cached transcripts and videos known to have none', async () => {
    const rich = await service.organization();
    await service.get('/channels/@nightwatchtavern/transcripts', rich.key);
    const { key } = await service.organization({ monthlyLimit: 0 });
    const answer = await service.get('/channels/@nightwatchtavern/transcripts', key);
    expect(answer.body.summary).toEqual({ total: 3, succeeded: 2, failed: 1, cached: 2, fetched: 0 });
  });

  it('is refused after the channel is resolved: an unknown channel is 404', async () => {
    const { key } = await service.organization({ monthlyLimit: 0 });
    expect((await service.get('/channels/@no-such-channel/transcripts', key)).status).toBe(404);
  });

  it('counts the reservations of running calls', async () => {
    const { key } = await service.organization({ monthlyLimit: 6 });
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = service.get('/channels/@fogsignalradio/transcripts?limit=4', key);
    await hold.arrived;
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 4, remaining: 2 });
    const refused = await service.get('/channels/@harbourlight/transcripts?limit=10', key);
    expect(refused.body.error).toMatchObject({ code: 'plan_limit_exceeded', used: 0, reserved: 4 });
    hold.release();
    expect((await running).body.summary.fetched).toBe(4);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 4, reserved: 0, remaining: 2 });
  });
});

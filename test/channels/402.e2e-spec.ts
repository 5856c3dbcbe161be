import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type TestService, type ServiceResponse } from '../harness/service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { DatabaseClock } from '../database/database-clock.js';

describe('a call that could exceed the quota', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());
  const FETCHES = { kind: ['player', 'reel', 'timedtext'] } as const;

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

describe('the quota headers', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({
      environment: { CORS_ORIGINS: ['https://app.example.com'], RATE_LIMIT_PER_MINUTE: 60 },
    });
  });
  afterAll(() => service.close());

  function quotaOf({ headers }: ServiceResponse): (number | undefined)[] {
    return ['x-quota-limit', 'x-quota-remaining'].map((name) =>
      headers[name] === undefined ? undefined : Number(headers[name]),
    );
  }

  it('include the reservation of a granted call', async () => {
    const { key } = await service.organization({ monthlyLimit: 20 });
    const beforeMs = Date.now();
    const response = await service.get('/channels/@fogsignalradio/transcripts?limit=6', key);
    expect([response.status, ...quotaOf(response)]).toEqual([200, 20, 14]);
    const now = new Date();
    const monthEndMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
    const resetSeconds = Number(response.headers['x-quota-reset']);
    // In whole seconds.
    expect(resetSeconds).toBeGreaterThan((monthEndMs - now.getTime()) / 1000 - 1);
    expect(resetSeconds).toBeLessThan((monthEndMs - beforeMs) / 1000 + 1);
  });

  it('are repeated, with the limit by minute, in the headers of the IETF draft', async () => {
    const { key } = await service.organization({ monthlyLimit: 20 });
    const granted = await service.get('/channels/@4-videos-no-6/transcripts', key);
    const refused = await service.get('/channels/@fogsignalradio/transcripts?limit=30', key);
    for (const [{ status, headers }, wanted, calls, remaining] of [
      [granted, 200, 59, 16],
      [refused, 402, 58, 16],
    ] as const) {
      expect(status).toBe(wanted);
      const monthSeconds = /^"minute";q=60;w=60, "month";q=20;w=(\d+)$/.exec(String(headers['ratelimit-policy']))?.[1];
      expect([28, 29, 30, 31]).toContain(Number(monthSeconds) / 86_400);
      const [minute, month] = ['x-ratelimit-reset', 'x-quota-reset'].map((name) => String(headers[name]));
      expect(headers['ratelimit']).toBe(`"minute";r=${calls};t=${minute}, "month";r=${remaining};t=${month}`);
    }
    const usage = await service.get('/usage', key);
    expect(usage.headers['ratelimit']).toMatch(/^"minute";r=\d+;t=\d+$/);
  });

  it('are also present on a free call, which creates no row', async () => {
    const { id, key } = await service.organization({ monthlyLimit: 9 });
    await service.get('/channels/@4-videos-no-1/transcripts', key);
    const answer = await service.get('/channels/@4-videos-no-1/transcripts', key);
    expect(answer.body.summary).toMatchObject({ total: 4, cached: 4, fetched: 0 });
    expect(quotaOf(answer)).toEqual([9, 5]);
    expect(Number(answer.headers['x-quota-reset'])).toBeGreaterThan(0);
    const rows = await service.query(`SELECT id FROM quota_reservations WHERE organization_id = '${id}'`);
    expect(rows).toHaveLength(1);
  });

  it('of a key with a limit of its own are that limit while less remains for it, in every answer', async () => {
    const { id: organizationId, key: unlimited } = await service.organization({ monthlyLimit: 100 });
    const { key } = await service.app.get(ApiKeysService).issue({ organizationId, monthlyLimit: 5 });
    const path = '/channels/@4-videos-no-11/transcripts';
    const fetched = await service.get(path, key);
    const cached = await service.get(path, key);
    const refused = await service.get('/channels/@4-videos-no-12/transcripts', key);
    for (const [answer, status] of [
      [fetched, 200],
      [cached, 200],
      [refused, 402],
    ] as const) {
      expect([answer.status, ...quotaOf(answer)]).toEqual([status, 5, 1]);
      expect(answer.headers['ratelimit-policy']).toContain('"month";q=5;');
      expect(answer.headers['ratelimit']).toContain('"month";r=1;');
    }
    expect(refused.body.error).toMatchObject({ scope: 'key', limit: 5, used: 4 });
    expect(quotaOf(await service.get(path, unlimited))).toEqual([100, 96]);
    await service.app.get(OrganizationsService).change(organizationId, { monthlyLimit: 4 });
    expect(quotaOf(await service.get(path, key))).toEqual([4, 0]);
  });

  it('use the clock of the database, not of the process, for the seconds until the next month', async () => {
    const { key } = await service.organization();
    const clock = new DatabaseClock((statement) => service.query(statement));
    await clock.stop(new Date('2020-05-31T23:58:59.5Z'));
    const fetched = await service.get('/channels/@4-videos-no-5/transcripts', key);
    const cached = await service.get('/channels/@4-videos-no-5/transcripts', key);
    await clock.reset();
    expect([fetched, cached].map(({ status, headers }) => [status, headers['x-quota-reset']])).toEqual([
      [200, '61'],
      [200, '61'],
    ]);
  });

  it('are absent where nothing was reserved or refused', async () => {
    const { key } = await service.organization();
    for (const path of ['/channels/x!/transcripts', '/channels/@4-videos-no-1/transcripts?limit=0']) {
      expect(quotaOf(await service.get(path, key))).toEqual([undefined, undefined]);
    }
  });

  it('are exposed to pages on an allowed origin, like the rate limit headers', async () => {
    const { key } = await service.organization();
    const answer = await service.get('/usage', key, { Origin: 'https://app.example.com' });
    const counts = ['RateLimit', 'Quota'].flatMap((of) =>
      ['Limit', 'Remaining', 'Reset'].map((name) => `X-${of}-${name}`),
    );
    expect(String(answer.headers['access-control-expose-headers']).split(',')).toEqual([
      'X-Request-Id',
      'Location',
      'WWW-Authenticate',
      'Retry-After',
      'Warning',
      'RateLimit-Policy',
      'RateLimit',
      ...counts,
    ]);
  });
});

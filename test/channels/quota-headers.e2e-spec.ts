import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { DatabaseClock } from '../database/database-clock.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';

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

describe('the quota headers', () => {
  it('include the reservation of a granted call', async () => {
    const { key } = await service.organization({ monthlyLimit: 20 });
    const response = await service.get('/channels/@fogsignalradio/transcripts?limit=6', key);
    expect([response.status, ...quotaOf(response)]).toEqual([200, 20, 14]);
    const now = new Date();
    const monthEndMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
    const resetSeconds = Number(response.headers['x-quota-reset']);
    expect(Math.abs(resetSeconds - (monthEndMs - now.getTime()) / 1000)).toBeLessThan(5);
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

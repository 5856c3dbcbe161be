import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../service.js';
import { until } from '../until.js';

let service: TestService;
let organizations: OrganizationsService;
let quota: QuotaService;

beforeAll(async () => {
  service = await startService();
  organizations = service.app.get(OrganizationsService);
  quota = service.app.get(QuotaService);
});
afterAll(() => service.close());
beforeEach(async () => {
  service.fakeYoutube.reset();
  await setClock('clock_timestamp()');
});

let channels = 0;

/** A channel of four videos that are not cached. */
const newChannel = (): string => `/channels/@bench-4x${(channels += 1)}/transcripts`;

/** Sets the clock of the quota to an SQL expression. */
async function setClock(expression: string): Promise<void> {
  await service.query(
    `CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT ${expression} $$`,
  );
}

/** Makes a call for four transcripts, applies the change while it fetches, and lets it complete. */
async function whileCalling({ key }: TestOrganization, change: () => Promise<unknown>): Promise<ServiceResponse> {
  const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
  const running = service.get(newChannel(), key);
  await hold.arrived;
  await change();
  hold.release();
  const response = await running;
  expect([response.status, response.body.summary.fetched]).toEqual([200, 4]);
  return response;
}

describe('during a call', () => {
  it('the start of a new month leaves the charge in the month of the reservation', async () => {
    await setClock("timestamptz '2026-05-31T23:59:50Z'");
    const organization = await service.organization({ monthlyLimit: 4 });
    await whileCalling(organization, async () => {
      await setClock("timestamptz '2026-06-01T00:00:10Z'");
      const june = (await service.get('/usage', organization.key)).body;
      expect(june).toMatchObject({ used: 0, reserved: 0, remaining: 4, period: { start: '2026-06-01T00:00:00.000Z' } });
    });
    expect((await service.get('/usage', organization.key)).body).toMatchObject({ used: 0, reserved: 0 });
    expect(await quota.verify(organization.id)).toMatchObject({
      exact: true,
      periods: [{ period: '2026-05', used: 4, recomputed: 4 }],
    });
    const next = await service.get(newChannel(), organization.key);
    expect(next.body.summary.fetched).toBe(4);
    expect(await quota.verify(organization.id)).toMatchObject({
      exact: true,
      periods: [
        { period: '2026-05', used: 4 },
        { period: '2026-06', used: 4 },
      ],
    });
  });

  it('a lowered limit lets the running call complete and be charged in full, and applies to the next', async () => {
    const organization = await service.organization({ monthlyLimit: 10 });
    await whileCalling(organization, async () => {
      await organizations.change(organization.id, { monthlyLimit: 1 });
      expect((await service.get(newChannel(), organization.key)).body.error).toMatchObject({ limit: 1, reserved: 4 });
    });
    expect((await service.get('/usage', organization.key)).body).toMatchObject({ limit: 1, used: 4, remaining: 0 });
    expect((await service.get(`${newChannel()}?limit=1`, organization.key)).status).toBe(402);
    await organizations.change(organization.id, { monthlyLimit: 5 });
    expect((await service.get(`${newChannel()}?limit=1`, organization.key)).status).toBe(200);
  });

  it('a lowered plan lets the running call complete and be charged in full, and applies to the next', async () => {
    const organization = await service.organization();
    await whileCalling(organization, async () => {
      await organizations.change(organization.id, { plan: 'free' });
      expect((await service.get(newChannel(), organization.key)).status).toBe(403);
    });
    expect((await service.get('/usage', organization.key)).body).toMatchObject({ plan: 'free', limit: 50, used: 4 });
    await organizations.change(organization.id, { plan: 'pro' });
    expect((await service.get(newChannel(), organization.key)).status).toBe(200);
  });

  it('a revoked key lets the running call complete and be charged, and is refused from the next call on', async () => {
    const organization = await service.organization();
    await whileCalling(organization, async () => {
      await service.app.get(ApiKeysService).revoke(organization.keyId);
      expect((await service.get(newChannel(), organization.key)).status).toBe(401);
    });
    expect(await quota.usage(organization.id)).toMatchObject({ used: 4, reserved: 0 });
  });

  it('a deleted organization lets the running call complete and be charged, and is refused from the next call on', async () => {
    const organization = await service.organization();
    await whileCalling(organization, async () => {
      await organizations.delete(organization.id);
      expect((await service.get(newChannel(), organization.key)).status).toBe(401);
    });
    expect(await quota.verify(organization.id)).toMatchObject({
      exact: true,
      periods: [{ used: 4, recomputed: 4, settledCalls: 1 }],
    });
  });

  it('an expired lease frees its quota; the late settlement charges what still fits', async () => {
    const organization = await service.organization({ monthlyLimit: 6 });
    const forfeited = async () => sumOf(await scrape(service), 'ct_quota_settlements_forfeited_total');
    const before = await forfeited();
    await whileCalling(organization, async () => {
      await setClock("clock_timestamp() + interval '61 seconds'");
      expect((await service.get('/usage', organization.key)).body).toMatchObject({ used: 0, reserved: 0 });
      // Another call uses its quota in the meantime, so 2 remain.
      const reserved = await quota.reserve({
        organizationId: organization.id,
        keyId: organization.keyId,
        requestId: 'other',
        resource: 'UC',
        required: 4,
        leaseSeconds: 60,
      });
      if (!reserved.granted) throw new Error('The freed room was not granted.');
      await quota.settle(reserved.id, 4);
    });
    expect(await quota.verify(organization.id)).toMatchObject({ exact: true, periods: [{ used: 6, forfeited: 2 }] });
    expect(await forfeited()).toBe(before + 1);
    await until(() => service.logs.some((line) => line.includes('"settlement_forfeited"')));
  });
});

describe('a call whose organization is deleted before its reservation', () => {
  it('is refused like a call with an invalid key, and costs nothing', async () => {
    const organization = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'browse-uploads' });
    const running = service.get(newChannel(), organization.key);
    await hold.arrived;
    await organizations.delete(organization.id);
    hold.release();
    const response = await running;
    expect([response.status, response.body.error.code]).toEqual([401, 'invalid_api_key']);
    expect(service.fakeYoutube.requests.count({ kind: ['player', 'timedtext'] })).toBe(0);
  });
});

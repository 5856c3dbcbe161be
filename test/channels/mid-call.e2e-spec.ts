import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { TranscriptsService } from '../../src/transcripts/transcripts.service.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';

let service: TestService;
let organizations: OrganizationsService;
let quota: QuotaService;

beforeAll(async () => {
  service = await startService();
  organizations = service.app.get(OrganizationsService);
  quota = service.app.get(QuotaService);
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

let channels = 0;

/** A channel of four videos that are not cached. */
const newChannel = (): string => `/channels/@4-videos-no-${(channels += 1)}/transcripts`;

/** Makes a call for four transcripts, applies the change while it fetches, and lets it complete. */
async function whileCalling({ key }: TestOrganization, change: () => Promise<unknown>): Promise<void> {
  const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
  const running = service.get(newChannel(), key);
  await hold.arrived;
  await change();
  hold.release();
  const response = await running;
  expect([response.status, response.body.summary.fetched]).toEqual([200, 4]);
}

describe('during a call', () => {
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

it('a shutdown waits for the settlement of a call that is still being planned', async () => {
  const { id, key } = await service.organization();
  const hold = service.fakeYoutube.hold({ kind: 'browse-uploads' });
  const running = service.get(newChannel(), key);
  await hold.arrived;
  const idle = service.app.get(TranscriptsService).idle();
  hold.release();
  await idle;
  expect(await quota.usage(id)).toMatchObject({ used: 4, reserved: 0 });
  await running;
});

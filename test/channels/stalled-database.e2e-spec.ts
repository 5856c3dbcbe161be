import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { stallTable } from '../database/lock-table.js';
import { startService, type TestOrganization, type TestService } from '../service.js';
import { until } from '../until.js';

const DEADLINE_SECONDS = 1;

let service: TestService;
let organization: TestOrganization;
let unlock: (() => Promise<void>) | undefined;

beforeAll(async () => {
  service = await startService({ environment: { REQUEST_DEADLINE_SECONDS: DEADLINE_SECONDS } });
  organization = await service.organization();
  // Loading modules on first use takes most of a second.
  await service.get('/channels/@bench-1x1/transcripts', organization.key);
});
afterAll(() => service.close());
afterEach(async () => {
  await unlock?.();
  unlock = undefined;
  service.fakeYoutube.reset();
});

const stall = async (): Promise<void> => {
  unlock = await stallTable(service.databaseUrl, 'quota_reservations');
};

describe('a database that stalls', () => {
  it('before the reservation of a call does not delay it past its deadline, and a late reservation is released', async () => {
    await stall();
    // The lock is released only after the response.
    const { status, body } = await service.get('/channels/@bench-2x2/transcripts', organization.key);
    expect([status, body.error.code]).toEqual([504, 'upstream_timeout']);
    await unlock?.();
    unlock = undefined;
    const released = `SELECT 1 FROM quota_reservations WHERE required = 2 AND settled_at IS NOT NULL AND charged = 0`;
    await until(async () => (await service.query(released)).length > 0);
    expect((await service.get('/usage', organization.key)).body).toMatchObject({ reserved: 0 });
  });

  it('during a settlement at the deadline does not hold back the summary', async () => {
    // A fetch that never ends.
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = service.get('/channels/@bench-2x3/transcripts?limit=1', organization.key);
    await hold.arrived;
    await stall();
    // The lock is released only after the response.
    const { body } = await running;
    expect(body.results[0].error.code).toBe('upstream_timeout');
    hold.release();
  });
});

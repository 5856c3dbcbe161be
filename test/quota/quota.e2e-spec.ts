import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { UnknownOrganizationError } from '../../src/organizations/organization-errors.js';
import { UnknownReservationError } from '../../src/quota/quota.service.js';
import { runQuery } from '../database/test-database.js';
import { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY, QuotaDatabase } from './quota-database.js';

const MIDDLE_OF_MAY = new Date('2026-05-15T12:00:00Z');
const LEASE_SECONDS = 60;

let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
beforeEach(() => database.setClock(MIDDLE_OF_MAY));
afterAll(() => database.close());

describe('the state of the quota', () => {
  it('is that of its own organization when concurrent calls share a query, and fails only for an unknown one', async () => {
    const [one, other] = [await database.newCustomer(10), await database.newCustomer(20)];
    await database.reserved(one, 3);
    const ids = [one.organizationId, 'org_unknown', other.organizationId, one.organizationId];
    expect(await Promise.allSettled(ids.map((id) => database.quota.state(id)))).toMatchObject([
      { value: { limit: 10, reserved: 3 } },
      { reason: new UnknownOrganizationError('org_unknown') },
      { value: { limit: 20, reserved: 0 } },
      { value: { limit: 10, reserved: 3 } },
    ]);
  });
});

describe('a reservation', () => {
  it('is granted exactly up to the limit', async () => {
    const customer = await database.newCustomer(10);
    const first = await database.reserve(customer, 7);
    expect(first).toMatchObject({ granted: true, quota: { limit: 10, used: 0, reserved: 7 } });
    expect(await database.reserve(customer, 4)).toEqual({
      granted: false,
      quota: { limit: 10, used: 0, reserved: 7, resetAt: new Date('2026-06-01T00:00:00Z'), asOf: MIDDLE_OF_MAY },
    });
    expect(await database.reserve(customer, 3)).toMatchObject({ granted: true, quota: { reserved: 10 } });
    expect(await database.reserve(customer, 1)).toMatchObject({ granted: false });
  });

  it('uses the limit of the plan unless the organization has its own', async () => {
    const free = await database.newCustomer(null, 'free');
    const pro = await database.newCustomer(null, 'pro');
    expect(await database.reserve(free, 0)).toMatchObject({ quota: { limit: PLAN_FREE_MONTHLY } });
    expect(await database.reserve(pro, 0)).toMatchObject({ quota: { limit: PLAN_PRO_MONTHLY } });
    await database.organizations.setPlan(free.organizationId, 'pro');
    expect(await database.reserve(free, 0)).toMatchObject({ quota: { limit: PLAN_PRO_MONTHLY } });
    await database.organizations.setLimit(free.organizationId, 7);
    expect(await database.reserve(free, 0)).toMatchObject({ quota: { limit: 7 } });
    await database.organizations.setLimit(free.organizationId, null);
    expect(await database.reserve(free, 0)).toMatchObject({ quota: { limit: PLAN_PRO_MONTHLY } });
  });

  it('is refused under a limit of 0 unless it requires nothing', async () => {
    const customer = await database.newCustomer(0);
    expect(await database.reserve(customer, 1)).toMatchObject({ granted: false, quota: { limit: 0 } });
    expect(await database.reserve(customer, 0)).toMatchObject({ granted: true });
  });

  it('of 0 transcripts is granted even when a lowered limit is already exceeded', async () => {
    const customer = await database.newCustomer(5);
    await database.quota.settle(await database.reserved(customer, 5), 5);
    await database.organizations.setLimit(customer.organizationId, 2);
    expect(await database.reserve(customer, 0)).toMatchObject({ granted: true, quota: { limit: 2, used: 5 } });
    expect(await database.reserve(customer, 1)).toMatchObject({ granted: false });
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ limit: 2, used: 5, remaining: 0 });
  });

  it('is separate for each organization', async () => {
    const [one, other] = [await database.newCustomer(5), await database.newCustomer(5)];
    await database.reserved(one, 5);
    expect(await database.reserve(other, 5)).toMatchObject({ granted: true });
  });

  it('stops counting at the moment its lease ends', async () => {
    const customer = await database.newCustomer(5);
    await database.reserved(customer, 5, LEASE_SECONDS);
    await database.moveClock(LEASE_SECONDS - 0.001);
    expect(await database.reserve(customer, 1)).toMatchObject({ granted: false, quota: { reserved: 5 } });
    await database.moveClock(0.001);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ reserved: 0, remaining: 5 });
    expect(await database.reserve(customer, 5)).toMatchObject({ granted: true });
  });

  it('stays expired when the clock steps back', async () => {
    const customer = await database.newCustomer(5);
    const first = await database.reserved(customer, 5, LEASE_SECONDS);
    await database.moveClock(LEASE_SECONDS);
    const second = await database.reserved(customer, 5, LEASE_SECONDS);
    await database.moveClock(-30);
    await database.quota.settle(first, 5);
    await database.quota.settle(second, 5);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5, reserved: 0 });
  });

  it('fails without an existing organization', async () => {
    const { keyId } = await database.newCustomer();
    const nobody = { organizationId: 'org_none', keyId };
    await expect(database.reserve(nobody, 1)).rejects.toBeInstanceOf(UnknownOrganizationError);
    await expect(database.quota.usage('org_none')).rejects.toBeInstanceOf(UnknownOrganizationError);
  });
});

describe('a settlement', () => {
  it('charges what was fetched and releases the rest', async () => {
    const customer = await database.newCustomer(10);
    await database.quota.settle(await database.reserved(customer, 10), 4);
    expect(await database.quota.usage(customer.organizationId)).toEqual({
      organization: customer.organizationId,
      plan: 'pro',
      period: { start: '2026-05-01T00:00:00.000Z', end: '2026-06-01T00:00:00.000Z' },
      limit: 10,
      used: 4,
      reserved: 0,
      remaining: 6,
      history: [{ period: '2026-05', used: 4 }],
    });
  });

  it('charges nothing for a call that fetched nothing, but keeps its row', async () => {
    const customer = await database.newCustomer(10);
    await database.quota.settle(await database.reserved(customer, 10), 0);
    expect(await database.quota.verify(customer.organizationId)).toEqual({
      exact: true,
      periods: [{ period: '2026-05', used: 0, recomputed: 0, forfeited: 0, settledCalls: 1 }],
    });
  });

  it('never charges above what was reserved', async () => {
    const customer = await database.newCustomer(10);
    await database.quota.settle(await database.reserved(customer, 3), 5);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 3 });
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ periods: [{ forfeited: 2 }] });
  });

  it('is applied only the first time, even when repeated concurrently', async () => {
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 8);
    await Promise.all(Array.from({ length: 20 }, () => database.quota.settle(id, 5)));
    await database.quota.settle(id, 8);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5, reserved: 0 });
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
  });

  it('after its lease charges what still fits and forfeits the rest', async () => {
    const customer = await database.newCustomer(10);
    const late = await database.reserved(customer, 8, LEASE_SECONDS);
    await database.moveClock(LEASE_SECONDS);
    await database.reserved(customer, 4);
    await database.quota.settle(await database.reserved(customer, 3), 3);
    await database.quota.settle(late, 8);
    // Of 10, 3 are used and 4 still reserved, so 3 of the 8 fit.
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 6, reserved: 4, remaining: 0 });
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({
      exact: true,
      periods: [{ used: 6, forfeited: 5 }],
    });
  });

  it('after its lease and over a lowered limit charges nothing', async () => {
    const customer = await database.newCustomer(10);
    await database.quota.settle(await database.reserved(customer, 6), 6);
    const late = await database.reserved(customer, 4, LEASE_SECONDS);
    await database.moveClock(LEASE_SECONDS);
    await database.organizations.setLimit(customer.organizationId, 3);
    await database.quota.settle(late, 4);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 6 });
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ periods: [{ forfeited: 4 }] });
  });

  it('within its lease charges in full though the limit was lowered in between', async () => {
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 8);
    await database.organizations.setLimit(customer.organizationId, 2);
    await database.quota.settle(id, 8);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ limit: 2, used: 8, remaining: 0 });
  });

  it('of an unknown reservation is refused', async () => {
    const unknown = '00000000-0000-4000-8000-000000000000';
    await expect(database.quota.settle(unknown, 1)).rejects.toBeInstanceOf(UnknownReservationError);
  });
});

describe('a month', () => {
  it('that begins during a call leaves the charge in the month of the reservation', async () => {
    await database.setClock(new Date('2026-05-31T23:59:50Z'));
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 10, LEASE_SECONDS);
    await database.moveClock(20);
    expect(await database.reserve(customer, 10)).toMatchObject({
      granted: true,
      quota: { used: 0, reserved: 10, resetAt: new Date('2026-07-01T00:00:00Z') },
    });
    await database.quota.settle(id, 9);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({
      period: { start: '2026-06-01T00:00:00.000Z' },
      used: 0,
      reserved: 10,
    });
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({
      exact: true,
      periods: [{ period: '2026-05', used: 9 }],
    });
  });

  it('ends at midnight UTC in any time zone of the session', async () => {
    await runQuery(
      database.url,
      `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET timezone = 'Asia/Tokyo'`,
    );
    const month = (): Promise<unknown> =>
      runQuery(
        database.url,
        `SELECT quota_period(quota_now())::text AS starts,
        quota_period_end(quota_period(quota_now())) = '2027-01-01T00:00:00Z' AS ends_with_2026`,
      );
    await database.setClock(new Date('2026-12-31T23:59:59.999Z'));
    expect(await month()).toEqual([{ starts: '2026-12-01', ends_with_2026: true }]);
    await database.moveClock(0.001);
    expect(await month()).toEqual([{ starts: '2027-01-01', ends_with_2026: false }]);
  });
});

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { InvalidApiKeyError } from '../../src/domain/errors.js';
import { UnknownOrganizationError } from '../../src/organizations/organization-errors.js';
import { runQuery } from '../database/test-database.js';
import { until } from '../harness/until.js';
import {
  PLAN_FREE_MONTHLY,
  PLAN_PRO_MONTHLY,
  QuotaDatabase,
  reservationOf,
  valueOf,
  type Customer,
} from './quota-database.js';

describe('the quota', () => {
  const MIDDLE_OF_MAY = new Date('2026-05-15T12:00:00Z');
  const LEASE_SECONDS = 60;
  const WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  let database: QuotaDatabase;

  beforeAll(async () => {
    database = await QuotaDatabase.open();
  });
  beforeEach(() => database.clock.stop(MIDDLE_OF_MAY));
  afterAll(() => database.close());

  // test/quota/quota-model.e2e-spec.ts has leases, limits that change, months that begin and a clock that steps back.
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
      expect(await database.reserve(free, 1)).toMatchObject({ quota: { limit: PLAN_FREE_MONTHLY } });
      expect(await database.reserve(pro, 1)).toMatchObject({ quota: { limit: PLAN_PRO_MONTHLY } });
      await database.organizations.change(free.organizationId, { plan: 'pro' });
      expect(await database.reserve(free, 1)).toMatchObject({ quota: { limit: PLAN_PRO_MONTHLY } });
      await database.organizations.change(free.organizationId, { monthlyLimit: 7 });
      expect(await database.reserve(free, 1)).toMatchObject({ quota: { limit: 7 } });
      await database.organizations.change(free.organizationId, { monthlyLimit: null });
      expect(await database.reserve(free, 1)).toMatchObject({ quota: { limit: PLAN_PRO_MONTHLY } });
    });

    it.each([0, 1, 37])(
      'is granted to exactly %i of 100 concurrent calls when that is what remains',
      async (remaining) => {
        const customer = await database.newCustomer(5 + remaining);
        await database.quota.settle(await database.reserved(customer, 5), 5);
        const reservations = await Promise.all(Array.from({ length: 100 }, () => database.reserve(customer, 1)));
        for (const { reservation } of reservations) if (reservation) await database.quota.settle(reservation.id, 1);
        expect(reservations.filter(({ granted }) => granted)).toHaveLength(remaining);
        expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5 + remaining, reserved: 0 });
        expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
      },
    );

    it('that waits for a change of the limit is decided under the new limit', async () => {
      const customer = await database.newCustomer(10);
      const change = database.dataSource.createQueryRunner();
      await change.startTransaction();
      await change.query('UPDATE organizations SET monthly_limit = 4 WHERE id = $1', [customer.organizationId]);
      const waiting = database.reserve(customer, 5);
      await until(async () => (await runQuery(database.url, WAITING)).length > 0);
      await change.commitTransaction();
      await change.release();
      expect(await waiting).toMatchObject({ granted: false, quota: { limit: 4, reserved: 0 } });
    });

    it('is refused at a stricter isolation level, at which its sums could predate its lock', async () => {
      const { organizationId, keyId } = await database.newCustomer(10);
      const reserving = database.dataSource.transaction('REPEATABLE READ', (manager) =>
        manager.query('SELECT * FROM quota_reserve_within($1, 60, 50, 5000)', [
          reservationOf(randomUUID(), { organizationId, keyId }, 1),
        ]),
      );
      await expect(reserving).rejects.toThrow('READ COMMITTED');
    });

    it('is refused under a limit of 0', async () => {
      const customer = await database.newCustomer(0);
      expect(await database.reserve(customer, 1)).toMatchObject({ granted: false, quota: { limit: 0 } });
    });

    it('is refused for an organization that was deleted after its key was checked', async () => {
      const customer = await database.newCustomer();
      await database.organizations.delete(customer.organizationId);
      for (const required of [0, 1])
        await expect(database.reserve(customer, required)).rejects.toBeInstanceOf(InvalidApiKeyError);
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
        library: { videos: 0, megabytes: 0, limitMegabytes: 2048 },
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

    it('is applied only the first time, even when repeated concurrently', async () => {
      const customer = await database.newCustomer(10);
      const id = await database.reserved(customer, 8);
      await Promise.all(Array.from({ length: 20 }, () => database.quota.settle(id, 5)));
      await database.quota.settle(id, 8);
      expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5, reserved: 0 });
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
    });

    it('after its lease charges what still fits and forfeits the rest, which is logged and counted', async () => {
      const registry = new Registry();
      const logged = jest.spyOn(Logger.prototype, 'warn');
      const customer = await database.newCustomer(10);
      const late = await database.reserved(customer, 8, LEASE_SECONDS);
      await database.clock.move(LEASE_SECONDS);
      await database.reserved(customer, 4);
      await database.quota.settle(await database.reserved(customer, 3), 3);
      await database.newQuotaService(registry).settle(late, 8);
      // Of 10, 3 are used and 4 still reserved, so 3 of the 8 fit.
      expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 6, reserved: 4, remaining: 0 });
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({
        exact: true,
        periods: [{ used: 6, forfeited: 5 }],
      });
      expect(await valueOf(registry, 'ct_quota_settlements_forfeited_total')).toBe(1);
      expect(logged.mock.lastCall?.[0]).toMatchObject({ event: 'settlement_forfeited', charged: 3, forfeited: 5 });
      logged.mockRestore();
    });
  });

  describe('a month', () => {
    it('that begins during a call leaves the charge in the month of the reservation', async () => {
      await database.clock.stop(new Date('2026-05-31T23:59:50Z'));
      const customer = await database.newCustomer(10);
      const id = await database.reserved(customer, 10, LEASE_SECONDS);
      await database.clock.move(20);
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
          `SELECT quota_period(clock_now())::text AS starts,
        quota_period_end(quota_period(clock_now())) = '2027-01-01T00:00:00Z' AS ends_with_2026`,
        );
      await database.clock.stop(new Date('2026-12-31T23:59:59.999Z'));
      expect(await month()).toEqual([{ starts: '2026-12-01', ends_with_2026: true }]);
      await database.clock.move(0.001);
      expect(await month()).toEqual([{ starts: '2027-01-01', ends_with_2026: false }]);
    });
  });
});

describe('growth', () => {
  let database: QuotaDatabase;

  beforeAll(async () => {
    database = await QuotaDatabase.open();
  });
  afterAll(() => database.close());

  const idsOf = async ({ organizationId }: Customer): Promise<string[]> => {
    const statement = 'SELECT id FROM quota_reservations WHERE organization_id = $1 ORDER BY created_at';
    return (await database.dataSource.query<{ id: string }[]>(statement, [organizationId])).map(({ id }) => id);
  };

  const openOf = ({ organizationId }: Customer): Promise<unknown[]> =>
    database.dataSource.query('SELECT reservation_id FROM quota_open_reservations WHERE organization_id = $1', [
      organizationId,
    ]);

  describe('the ledger', () => {
    it('is settled without writing an index again', async () => {
      const customer = await database.newCustomer();
      for (let call = 0; call < 20; call += 1) await database.reserved(customer, 5);
      const [counts] = await database.dataSource.transaction(async (manager): Promise<unknown[]> => {
        for (const id of await idsOf(customer)) await manager.query('SELECT quota_settle($1, 3, 50, 5000)', [id]);
        return manager.query(`
        SELECT pg_stat_get_xact_tuples_updated(ledger)::integer AS updated,
               pg_stat_get_xact_tuples_hot_updated(ledger)::integer AS hot
          FROM CAST('quota_reservations'::regclass AS oid) AS ledger`);
      });
      expect(counts).toEqual({ updated: 20, hot: 20 });
    });

    it('has its reservations in the order in which they were made, as UUIDs of version 7', async () => {
      const customer = await database.newCustomer();
      const starts: string[] = [];
      for (let call = 0; call < 5; call += 1) {
        const before = Date.now();
        const id = await database.reserved(customer, 1);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        const at = parseInt(id.replace('-', '').slice(0, 12), 16);
        expect(at).toBeGreaterThanOrEqual(before);
        expect(at).toBeLessThanOrEqual(Date.now());
        starts.push(id.slice(0, 13));
      }
      expect(starts).toEqual([...starts].sort());
      expect(new Set(await idsOf(customer)).size).toBe(5);
    });
  });

  describe('the open reservations of an organization', () => {
    it('are those of its calls in flight: none that was settled, cancelled or has expired', async () => {
      await database.clock.stop(new Date('2026-05-01T00:00:00Z'));
      const customer = await database.newCustomer();
      const [settled, cancelled, expired] = [
        await database.reserved(customer, 1),
        await database.reserved(customer, 1),
        await database.reserved(customer, 1, 10),
      ];
      const running = await database.reserved(customer, 1);
      expect(await openOf(customer)).toHaveLength(4);
      await database.quota.settle(settled, 1);
      await database.dataSource.query('SELECT quota_cancel($1)', [reservationOf(cancelled, customer, 1)]);
      expect(await openOf(customer)).toEqual(
        expect.arrayContaining([{ reservation_id: expired }, { reservation_id: running }]),
      );
      await database.clock.move(11);
      expect((await database.reserve(customer, 100_000)).granted).toBe(false);
      expect(await openOf(customer)).toEqual([{ reservation_id: running }]);
    });
  });
});

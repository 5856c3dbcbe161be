import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Customer, QuotaDatabase } from './quota-database.js';
import { QuotaModel } from './quota-model.js';

const LEASE_SECONDS = 60;
let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
afterAll(() => database.close());

describe('the limits of keys', () => {
  const MIDDLE_OF_MAY = new Date('2026-05-15T12:00:00Z');
  beforeEach(() => database.clock.stop(MIDDLE_OF_MAY));

  /** A customer with a webhook, whose key has a limit. */
  async function limitedCustomer(limit: number | null, keyLimit: number): Promise<Customer> {
    const customer = await database.newCustomer(limit);
    await database.listen(customer);
    const { id: keyId } = await database.keys.issue({
      organizationId: customer.organizationId,
      monthlyLimit: keyLimit,
    });
    return { ...customer, keyId };
  }

  async function spend(customer: Customer, count: number): Promise<void> {
    await database.quota.settle(await database.reserved(customer, count), count);
  }
  const keyUsage = async ({ organizationId, keyId }: Customer) =>
    (await database.quota.usage(organizationId, keyId)).key;

  describe('a key with a monthly limit', () => {
    it('is granted up to its limit, and no other key is refused for it', async () => {
      const customer = await limitedCustomer(100, 10);
      const { id: other } = await database.keys.issue({ organizationId: customer.organizationId });
      expect(await database.reserve(customer, 7)).toMatchObject({
        granted: true,
        quota: { limit: 100, reserved: 7, key: { limit: 10, used: 0, reserved: 7 } },
      });
      expect(await database.reserve(customer, 4)).toMatchObject({
        granted: false,
        quota: { key: { limit: 10, used: 0, reserved: 7 } },
      });
      const unlimited = await database.reserve({ ...customer, keyId: other }, 90);
      expect(unlimited.granted).toBe(true);
      expect(unlimited.quota.key).toBeUndefined();
      // The organization has less left than the key.
      expect(await database.reserve(customer, 4)).toMatchObject({ granted: false, quota: { reserved: 97 } });
      expect(await keyUsage(customer)).toEqual({ limit: 10, used: 0, reserved: 7, remaining: 3 });
      expect(await keyUsage({ ...customer, keyId: other })).toBeUndefined();
    });

    it('of 0 is granted nothing', async () => {
      const customer = await limitedCustomer(100, 0);
      expect((await database.reserve(customer, 1)).granted).toBe(false);
      expect(await keyUsage(customer)).toEqual({ limit: 0, used: 0, reserved: 0, remaining: 0 });
    });

    it('shares it with the keys that it is rotated to, however often', async () => {
      const first = await limitedCustomer(100, 10);
      await spend(first, 4);
      const second = { ...first, keyId: (await database.keys.rotate(first.keyId, 24)).id };
      await spend(second, 3);
      const third = { ...first, keyId: (await database.keys.rotate(second.keyId, 24)).id };
      for (const key of [first, second, third]) {
        expect(await keyUsage(key)).toMatchObject({ limit: 10, used: 7, remaining: 3 });
        expect((await database.reserve(key, 4)).granted).toBe(false);
      }
      await spend(third, 3);
      expect((await database.reserve(first, 1)).granted).toBe(false);
      expect(await database.quota.verify(first.organizationId)).toMatchObject({
        exact: true,
        keys: [{ key: first.keyId, period: '2026-05', used: 10, recomputed: 10 }],
      });
    });

    it('may use it again in the next month, and a settlement in that month is charged to the month before', async () => {
      const customer = await limitedCustomer(100, 10);
      await spend(customer, 6);
      await database.clock.stop(new Date('2026-05-31T23:59:50Z'));
      const overMidnight = await database.reserved(customer, 4);
      await database.clock.move(20);
      await spend(customer, 10);
      await database.quota.settle(overMidnight, 4);
      expect((await database.reserve(customer, 1)).granted).toBe(false);
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({
        exact: true,
        keys: [
          { period: '2026-05', used: 10, recomputed: 10 },
          { period: '2026-06', used: 10, recomputed: 10 },
        ],
      });
    });

    it('is charged after its lease only what still fits under its limit', async () => {
      const customer = await limitedCustomer(100, 10);
      const late = await database.reserved(customer, 8, LEASE_SECONDS);
      await database.clock.move(LEASE_SECONDS);
      await spend(customer, 7);
      await database.quota.settle(late, 8);
      expect(await keyUsage(customer)).toMatchObject({ used: 10, reserved: 0 });
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({
        exact: true,
        periods: [{ forfeited: 5 }],
      });
    });

    it('is found when its count is wrong', async () => {
      const customer = await limitedCustomer(100, 10);
      await spend(customer, 5);
      await database.dataSource.query('UPDATE quota_key_periods SET used = 4 WHERE quota_key_id = $1', [
        customer.keyId,
      ]);
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({
        exact: false,
        periods: [{ used: 5, recomputed: 5 }],
        keys: [{ used: 4, recomputed: 5 }],
      });
    });

    it('keeps an exact count while old months are pruned during settlements', async () => {
      const customer = await limitedCustomer(10_000, 10_000);
      await database.clock.stop(new Date('2024-01-10T00:00:00Z'));
      await spend(customer, 5);
      const ids: string[] = [];
      for (let count = 0; count < 20; count += 1) ids.push(await database.reserved(customer, 5, 60));
      // Only a test's clock jumps like this.
      for (const id of ids) await database.extendLease(id, new Date('2027-01-01T00:00:00Z'));
      await database.clock.stop(new Date('2026-06-15T00:00:00Z'));
      let settling = true;
      const settled = Promise.all(ids.map((id) => database.quota.settle(id, 3))).finally(() => (settling = false));
      do {
        await database.retention.prune();
        expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
      } while (settling);
      await settled;
      await database.retention.prune();
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({
        exact: true,
        periods: [],
        keys: [],
      });
    });

    it('has one row for each month, whose charges write no index again', async () => {
      const customer = await limitedCustomer(null, 5_000);
      const ids: string[] = [];
      for (let count = 0; count < 20; count += 1) ids.push(await database.reserved(customer, 5));
      const updates = `
      SELECT pg_stat_get_xact_tuples_updated(counts)::integer AS updated,
             pg_stat_get_xact_tuples_hot_updated(counts)::integer AS hot
        FROM CAST('quota_key_periods'::regclass AS oid) AS counts`;
      type Updates = { updated: number; hot: number };
      const [before, after] = await database.dataSource.transaction(async (manager) => {
        const [first] = await manager.query<Updates[]>(updates);
        for (const id of ids) await manager.query('SELECT quota_settle($1, 3, 50, 5000)', [id]);
        return [first, (await manager.query<Updates[]>(updates))[0]];
      });
      // The first one inserts the row.
      expect((after?.updated ?? 0) - (before?.updated ?? 0)).toBe(19);
      expect((after?.hot ?? 0) - (before?.hot ?? 0)).toBe(19);
    });
  });

  describe('the event of a threshold', () => {
    it('is stored once by the settlements that reach 80 and 100 percent, in each month', async () => {
      const customer = await limitedCustomer(10, 100);
      await spend(customer, 7);
      expect(await database.thresholdEvents(customer)).toEqual([]);
      await spend(customer, 1);
      const first = { threshold: 80, used: 8, limit: 10, period: '2026-05' };
      expect(await database.thresholdEvents(customer)).toEqual([first]);
      await spend(customer, 1);
      await spend(customer, 1);
      const second = { threshold: 100, used: 10, limit: 10, period: '2026-05' };
      expect(await database.thresholdEvents(customer)).toEqual([first, second]);
      await database.clock.stop(new Date('2026-06-01T00:00:00Z'));
      await spend(customer, 10);
      expect((await database.thresholdEvents(customer)).slice(2)).toEqual([
        { threshold: 80, used: 10, limit: 10, period: '2026-06' },
        { threshold: 100, used: 10, limit: 10, period: '2026-06' },
      ]);
    });

    it('is not repeated when the limit is raised and reached again, and follows a limit that was lowered', async () => {
      const customer = await limitedCustomer(10, 100);
      const limit = (monthlyLimit: number) => database.organizations.change(customer.organizationId, { monthlyLimit });
      await spend(customer, 8);
      await limit(20);
      await spend(customer, 9);
      const first = { threshold: 80, used: 8, limit: 10, period: '2026-05' };
      expect(await database.thresholdEvents(customer)).toEqual([first]);
      await limit(18);
      await spend(customer, 1);
      expect(await database.thresholdEvents(customer)).toEqual([
        first,
        { threshold: 100, used: 18, limit: 18, period: '2026-05' },
      ]);
    });

    it('of a limit that was lowered below the use comes with the next charge, and none of a limit of 0', async () => {
      const customer = await limitedCustomer(100, 100);
      await spend(customer, 30);
      const running = await database.reserved(customer, 5);
      const last = await database.reserved(customer, 5);
      await database.organizations.change(customer.organizationId, { monthlyLimit: 0 });
      await database.quota.settle(running, 1);
      expect(await database.thresholdEvents(customer)).toEqual([]);
      await database.organizations.change(customer.organizationId, { monthlyLimit: 20 });
      expect(await database.thresholdEvents(customer)).toEqual([]);
      await database.quota.settle(last, 1);
      expect(await database.thresholdEvents(customer)).toMatchObject([
        { threshold: 80, used: 32, limit: 20 },
        { threshold: 100, used: 32, limit: 20 },
      ]);
    });

    it('of a limit of 1 is both at once, and a call that is charged nothing stores none', async () => {
      const customer = await limitedCustomer(1, 100);
      await database.quota.settle(await database.reserved(customer, 1), 0);
      expect(await database.thresholdEvents(customer)).toEqual([]);
      await spend(customer, 1);
      expect(await database.thresholdEvents(customer)).toMatchObject([{ threshold: 80 }, { threshold: 100 }]);
    });
  });
  /** Where the process of a call dies: before its settlement is committed, after it, both one after the other, or before it settles. */
  const CRASHES = ['none', 'before', 'after', 'both', 'abandoned'] as const;

  const call = fc.record({
    required: fc.integer({ min: 1, max: 6 }),
    unfetched: fc.nat(2),
    limited: fc.boolean(),
    crash: fc.constantFrom(...CRASHES),
  });

  describe('concurrent calls of processes that crash', () => {
    it('never pass the limit of the organization or of the key, and store each event exactly once', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 40 }),
          fc.integer({ min: 0, max: 20 }),
          fc.array(call, { minLength: 10, maxLength: 30 }),
          async (limit, keyLimit, calls) => {
            const customer = await limitedCustomer(limit, keyLimit);
            const { id: unlimited } = await database.keys.issue({ organizationId: customer.organizationId });
            const keys = { limited: customer, unlimited: { ...customer, keyId: unlimited } };
            await Promise.all(calls.map((one) => make(one, one.limited ? keys.limited : keys.unlimited)));
            const { used, reserved, key } = await database.quota.usage(customer.organizationId, customer.keyId);
            expect(used + reserved).toBeLessThanOrEqual(limit);
            expect((key?.used ?? 0) + (key?.reserved ?? 0)).toBeLessThanOrEqual(keyLimit);
            expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
            const reached = [80, 100].filter((threshold) => used * 100 >= limit * threshold);
            const events = await database.thresholdEvents(customer);
            expect(events.map(({ threshold }) => threshold)).toEqual(reached);
            for (const event of events) {
              expect(event.used * 100).toBeGreaterThanOrEqual(limit * event.threshold);
              // The largest call is charged 6.
              expect((event.used - 6) * 100).toBeLessThan(limit * event.threshold);
            }
          },
        ),
        { numRuns: 20 },
      );
    });
  });

  async function make(
    { required, unfetched, crash }: typeof call extends fc.Arbitrary<infer T> ? T : never,
    of: Customer,
  ) {
    const { reservation } = await database.reserve(of, required, LEASE_SECONDS);
    if (!reservation || crash === 'abandoned') return;
    const fetched = Math.max(0, required - unfetched);
    if (crash === 'before' || crash === 'both') await dieBeforeCommit(reservation.id, fetched);
    await database.quota.settle(reservation.id, fetched);
    if (crash === 'after' || crash === 'both') await database.quota.settle(reservation.id, fetched);
  }

  /** The server rolls back what a process has not committed when its connection ends. */
  async function dieBeforeCommit(reservationId: string, fetched: number): Promise<void> {
    const runner = database.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('SELECT * FROM quota_settle($1, $2, 50, 5000)', [reservationId, fetched]);
    await runner.rollbackTransaction();
    await runner.release();
  }
});

const START = new Date('2026-05-31T23:59:00Z');

type Step =
  | { do: 'reserve'; required: number; key: number }
  | { do: 'rotate' }
  | { do: 'settle'; which: number; fetched: number }
  | { do: 'wait'; seconds: number }
  | { do: 'limit'; limit: number };

const count = fc.integer({ min: 0, max: 12 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      required: fc.integer({ min: 1, max: 12 }),
      key: fc.nat(3),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(20), fetched: count }) },
  // The clock steps back when it is set, or after a failover to another server.
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(-30, 1, 30, 60, 300) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rotate' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), limit: fc.integer({ min: 0, max: 20 }) }) },
);

/** What the steps of one run have made. */
interface Run {
  customer: Customer;
  /** The key with a limit and those that it was rotated to. */
  limitedKeys: string[];
  model: QuotaModel;
  /** Of the reservations. */
  ids: string[];
}

async function newRun(limit: number, keyLimit: number): Promise<Run> {
  await database.clock.stop(START);
  const customer = await database.newCustomer(limit);
  await database.listen(customer);
  const { id } = await database.keys.issue({ organizationId: customer.organizationId, monthlyLimit: keyLimit });
  const model = new QuotaModel(START.getTime(), limit, LEASE_SECONDS, keyLimit);
  return { customer, limitedKeys: [id], model, ids: [] };
}

describe('any sequence of reservations, settlements, waits, rotations and changes of the limit', () => {
  it('matches a reference model after each step', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(40),
        count,
        fc.array(step, { minLength: 5, maxLength: 40 }),
        async (limit, ofKey, steps) => {
          const run = await newRun(limit, ofKey);
          const { customer, limitedKeys, model } = run;
          for (const one of steps) {
            await take(one, run);
            const usage = await database.quota.usage(customer.organizationId, limitedKeys.at(-1));
            expect(usage).toMatchObject({ ...model.counts(), key: model.keyCounts() });
            expect(await database.thresholdEvents(customer)).toEqual(model.events);
          }
          const verification = await database.quota.verify(customer.organizationId);
          expect(verification.exact).toBe(true);
          expect(new Set(verification.keys?.map(({ key }) => key)).size).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 30 },
    );
  });
});

async function take(one: Step, { customer, limitedKeys, model, ids }: Run): Promise<void> {
  switch (one.do) {
    case 'reserve': {
      const limitedKey = one.key === 0 ? undefined : limitedKeys[one.key % limitedKeys.length];
      const payer = { ...customer, keyId: limitedKey ?? customer.keyId };
      const { granted, reservation } = await database.reserve(payer, one.required, LEASE_SECONDS);
      expect(granted).toBe(model.reserve(one.required, limitedKey !== undefined));
      if (reservation) ids.push(reservation.id);
      return;
    }
    case 'settle': {
      const index = ids.length === 0 ? 0 : one.which % ids.length;
      const id = ids[index];
      if (id === undefined) return;
      await database.quota.settle(id, one.fetched);
      model.settle(index, one.fetched);
      return;
    }
    case 'wait':
      await database.clock.move(one.seconds);
      model.wait(one.seconds);
      return;
    case 'rotate':
      limitedKeys.push((await database.keys.rotate(limitedKeys.at(-1) ?? '', 24)).id);
      return;
    case 'limit':
      await database.organizations.change(customer.organizationId, { monthlyLimit: one.limit });
      model.limit = one.limit;
  }
}

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Customer, QuotaDatabase } from './quota-database.js';

let database: QuotaDatabase;
beforeEach(async () => {
  database = await QuotaDatabase.open();
});
afterEach(() => database.close());

async function spend(customer: Customer, at: string, fetched: number): Promise<void> {
  await database.clock.stop(new Date(at));
  await database.quota.settle(await database.reserved(customer, fetched + 1), fetched);
}

const months = async ({ organizationId }: Customer): Promise<string[]> =>
  (await database.quota.verify(organizationId)).periods.map(({ period }) => period);

describe('pruning the usage', () => {
  it('removes months before the retention period with their calls, also of a deleted organization, and leaves the rest exact', async () => {
    const [one, other] = [await database.newCustomer(100), await database.newCustomer(100)];
    for (const at of ['2024-03-31T23:59:59Z', '2024-04-30T23:59:59Z', '2024-05-01T00:00:00Z', '2026-05-02T00:00:00Z']) {
      await spend(one, at, 3);
      await spend(one, at, 0);
    }
    await spend(other, '2024-04-15T00:00:00Z', 2);
    await database.organizations.delete(other.organizationId);
    await database.clock.stop(new Date('2026-05-15T12:00:00Z'));

    expect(await database.retention.prune()).toEqual({
      retentionMonths: 24,
      keptFrom: '2024-05',
      periods: 3,
      calls: 5,
      next: null,
    });
    expect(await months(one)).toEqual(['2024-05', '2026-05']);
    expect(await months(other)).toEqual([]);
    expect(await database.quota.verify(one.organizationId)).toMatchObject({ exact: true });
    expect(await database.quota.usage(one.organizationId)).toMatchObject({ used: 3, remaining: 97 });
    expect(await database.retention.prune()).toMatchObject({ periods: 0, calls: 0 });
  });

  it('works in steps, each of which says where the next one begins', async () => {
    const customers = [
      await database.newCustomer(100),
      await database.newCustomer(100),
      await database.newCustomer(100),
    ];
    for (const customer of customers) await spend(customer, '2024-03-31T23:59:59Z', 3);
    await database.clock.stop(new Date('2026-05-15T12:00:00Z'));
    // A step is over after its first statement.
    database.retention.stepMs = 0;
    const steps = [await database.retention.prune()];
    for (let next = steps[0]?.next ?? null; next !== null;) {
      const step = await database.retention.prune(undefined, next);
      steps.push(step);
      next = step.next;
    }
    const ids = customers.map(({ organizationId }) => organizationId).sort();
    expect(steps.map(({ calls, next }) => [calls, next])).toEqual([
      [1, ids[1]],
      [1, ids[2]],
      [1, null],
    ]);
    for (const customer of customers) expect(await months(customer)).toEqual([]);
  });

  it('removes expired reservations, but not those of running calls, which can still be settled', async () => {
    const customer = await database.newCustomer(100);
    await database.clock.stop(new Date('2026-04-30T23:59:30Z'));
    await database.reserved(customer, 5, 10);
    const running = await database.reserved(customer, 7, 60);
    await spend(customer, '2026-04-30T23:59:31Z', 1);
    Object.assign(database.environment, { USAGE_RETENTION_MONTHS: 1 });
    await database.clock.stop(new Date('2026-06-01T00:00:00Z'));
    await database.extendLease(running, new Date('2026-06-01T00:01:00Z'));
    expect(await database.retention.prune()).toMatchObject({ keptFrom: '2026-05', calls: 2 });
    await database.quota.settle(running, 6);
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({
      exact: true,
      periods: [{ period: '2026-04', used: 6, recomputed: 6, settledCalls: 1 }],
    });
  });

  it('during settlements never leaves an inexact month', async () => {
    const customer = await database.newCustomer(10_000);
    await database.clock.stop(new Date('2026-01-10T00:00:00Z'));
    const ids: string[] = [];
    for (let count = 0; count < 40; count += 1) ids.push(await database.reserved(customer, 5, 60));
    Object.assign(database.environment, { USAGE_RETENTION_MONTHS: 1 });
    // The months have long ended although the calls still have their leases: only a test's clock jumps like this.
    for (const id of ids) await database.extendLease(id, new Date('2027-01-01T00:00:00Z'));
    await database.clock.stop(new Date('2026-06-15T00:00:00Z'));
    let settling = true;
    const settled = Promise.all(ids.map((id) => database.quota.settle(id, 3))).finally(() => (settling = false));
    do {
      await database.retention.prune();
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
    } while (settling);
    await settled;
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
  });
});

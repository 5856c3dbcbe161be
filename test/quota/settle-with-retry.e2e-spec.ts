import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { QuotaDatabase, valueOf } from './quota-database.js';

let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
beforeEach(breakSettling);
afterEach(mendSettling);
afterAll(() => database.close());

describe('settlement with retries', () => {
  it('succeeds when the database is available again before the lease ends', async () => {
    const registry = new Registry();
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 5);
    const settling = database.newQuotaService(registry).settleWithRetry(id, 5, performance.now() + 60_000);
    await expect(database.quota.settle(id, 5)).rejects.toThrow();
    await mendSettling();
    expect(await settling).toBe(true);
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'settled')).toBe(1);
    expect(await valueOf(registry, 'ct_quota_settlement_retries_total')).toBeGreaterThan(0);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5, reserved: 0 });
  });

  it('stops without rejecting when the lease has ended, and charges nothing', async () => {
    const registry = new Registry();
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 5);
    const quota = database.newQuotaService(registry);
    expect(await quota.settleWithRetry(id, 5, performance.now() + 250)).toBe(false);
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'given_up')).toBe(1);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 0, reserved: 5 });
  });

  it('stops immediately for an unknown reservation', async () => {
    await mendSettling();
    const unknown = '00000000-0000-4000-8000-000000000000';
    // With retries it would run into the timeout of the test.
    expect(await database.quota.settleWithRetry(unknown, 5, performance.now() + 600_000)).toBe(false);
  });

  it('makes a last attempt at shutdown, which waits for it', async () => {
    const quota = database.newQuotaService();
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 5);
    const other = await database.reserved(customer, 4);
    const settling = [id, other].map((one) => quota.settleWithRetry(one, 4, performance.now() + 60_000));
    await expect(database.quota.settle(id, 4)).rejects.toThrow();
    await mendSettling();
    await quota.onApplicationShutdown();
    expect(await Promise.all(settling)).toEqual([true, true]);
  });
});

async function breakSettling(): Promise<void> {
  await database.dataSource.query('ALTER FUNCTION quota_settle RENAME TO quota_settle_away');
}

async function mendSettling(): Promise<void> {
  const [{ unavailable } = { unavailable: false }] = await database.dataSource.query<{ unavailable: boolean }[]>(
    "SELECT to_regproc('quota_settle_away') IS NOT NULL AS unavailable",
  );
  if (unavailable) await database.dataSource.query('ALTER FUNCTION quota_settle_away RENAME TO quota_settle');
}

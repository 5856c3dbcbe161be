import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { QueryFailedError } from 'typeorm';
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
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'given_up')).toBe(0);
    expect(await valueOf(registry, 'ct_quota_settlements_forfeited_total')).toBe(0);
    expect(await valueOf(registry, 'ct_quota_settlement_retries_total')).toBeGreaterThan(0);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5, reserved: 0 });
  });

  it('stops without rejecting when the lease has ended, and charges nothing', async () => {
    const registry = new Registry();
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 5);
    const quota = database.newQuotaService(registry);
    expect(await quota.settleWithRetry(id, 5, performance.now() + 250)).toBe(false);
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'settled')).toBe(0);
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'given_up')).toBe(1);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 0, reserved: 5 });
  });

  it.each([
    ['no', 'the database refused every attempt', Object.assign(new Error('canceled'), { code: '57014' })],
    ['unknown', 'the answer to an attempt did not come', new Error('Query read timeout')],
  ])('reports an abandoned charge as "%s" when %s', async (charged, _why, cause) => {
    const refused = Object.assign(new Error('deadlock'), { code: '40P01' });
    const query = jest.spyOn(database.dataSource, 'query');
    const error = jest.spyOn(Logger.prototype, 'error').mockReturnValue(undefined);
    try {
      query.mockRejectedValue(new QueryFailedError('SELECT', [], refused));
      query.mockRejectedValueOnce(new QueryFailedError('SELECT', [], cause));
      expect(await database.quota.settleWithRetry('any', 5, performance.now() + 200)).toBe(false);
      expect(error).toHaveBeenCalledWith(expect.objectContaining({ event: 'settlement_given_up', charged }));
    } finally {
      query.mockRestore();
      error.mockRestore();
    }
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

  it('ends at shutdown when the database stays unavailable', async () => {
    const quota = database.newQuotaService();
    const id = await database.reserved(await database.newCustomer(10), 5);
    const settling = quota.settleWithRetry(id, 5, performance.now() + 60_000);
    await quota.onApplicationShutdown();
    expect(await settling).toBe(false);
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

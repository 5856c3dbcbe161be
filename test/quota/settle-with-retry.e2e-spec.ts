import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { QuotaMetrics } from '../../src/quota/quota-metrics.js';
import { SettlementRetries } from '../../src/quota/settlement-retries.js';
import { until } from '../harness/until.js';
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
    const settling = database.newQuotaService(registry).settleWithRetry(leased(id, 60_000), 5);
    await until(async () => (await valueOf(registry, 'ct_quota_settlement_retries_total')) > 0);
    await mendSettling();
    await settling;
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'settled')).toBe(1);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 5, reserved: 0 });
  });

  it('stops without rejecting when the lease has ended, and charges nothing', async () => {
    const registry = new Registry();
    const customer = await database.newCustomer(10);
    const id = await database.reserved(customer, 5);
    await database.newQuotaService(registry).settleWithRetry(leased(id, 250), 5);
    expect(await valueOf(registry, 'ct_quota_settlements_total', 'given_up')).toBe(1);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 0, reserved: 5 });
  });

  it('makes a last attempt at shutdown, which waits for it', async () => {
    const retries = new SettlementRetries(new QuotaMetrics(new Registry()));
    const customer = await database.newCustomer(10);
    const ids = [await database.reserved(customer, 5), await database.reserved(customer, 4)];
    for (const id of ids) void retries.untilSettled(leased(id, 60_000), 4, () => database.quota.settle(id, 4));
    await expect(database.quota.settle(ids[0] ?? '', 4)).rejects.toThrow();
    await mendSettling();
    await retries.onApplicationShutdown();
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 8, reserved: 0 });
  });

  it('is an error in the log when something was fetched, and not when the call was refused', async () => {
    expect(await levelsOf(5)).toEqual(['error settlement_given_up']);
    expect(await levelsOf(0)).toEqual(['warn reservation_expired']);
  });
});

const leased = (id: string, leaseMs: number) => ({
  id,
  organizationId: 'org_any',
  leaseEndsAtMs: performance.now() + leaseMs,
});

/** The levels at which one settlement is logged until it is given up. */
async function levelsOf(fetched: number): Promise<string[]> {
  const levels: string[] = [];
  const log = (level: string) => (line: { event: string }) => void levels.push(`${level} ${line.event}`);
  Logger.overrideLogger({ log: log('log'), warn: log('warn'), error: log('error') });
  const refuse = (): Promise<void> => Promise.reject(new Error('The database is unavailable.'));
  await new SettlementRetries(new QuotaMetrics(new Registry())).untilSettled(leased('r', 0), fetched, refuse);
  Logger.overrideLogger(false);
  return levels;
}

async function breakSettling(): Promise<void> {
  await database.dataSource.query('ALTER FUNCTION quota_settle RENAME TO quota_settle_away');
}

async function mendSettling(): Promise<void> {
  const [{ unavailable } = { unavailable: false }] = await database.dataSource.query<{ unavailable: boolean }[]>(
    "SELECT to_regproc('quota_settle_away') IS NOT NULL AS unavailable",
  );
  if (unavailable) await database.dataSource.query('ALTER FUNCTION quota_settle_away RENAME TO quota_settle');
}

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { QuotaMetrics } from '../../src/quota/quota-metrics.js';
import { SettlementRetries } from '../../src/quota/settlement-retries.js';
import { until } from '../harness/until.js';
import { QuotaDatabase, valueOf, type Customer, reservationOf } from './quota-database.js';
import { DatabaseSlowError } from '../../src/database/database-errors.js';
import { interruptibleLink, type InterruptibleLink } from '../database/interruptible-link.js';
import { stallTable, WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { createTestDatabase } from '../database/test-database.js';
import { useOwnTimeouts } from '../jest/wide-timeouts.js';

describe('settlement with retries', () => {
  let database: QuotaDatabase;

  beforeAll(async () => {
    database = await QuotaDatabase.open();
  });
  beforeEach(breakSettling);
  afterEach(mendSettling);
  afterAll(() => database.close());

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

describe('a slow database', () => {
  let link: InterruptibleLink;
  let database: QuotaDatabase;
  /** Its connections bypass the link. */
  let aside: DataSource;
  let databaseUrl: string;

  beforeAll(async () => {
    useOwnTimeouts();
    const testDatabase = await createTestDatabase();
    databaseUrl = testDatabase.url;
    link = await interruptibleLink(databaseUrl);
    database = await QuotaDatabase.open({ ...testDatabase, url: link.url });
    aside = await new DataSource({ type: 'postgres', url: testDatabase.url, installExtensions: false }).initialize();
  });

  afterAll(async () => {
    await aside.destroy();
    await database.close();
    await link.close();
  });
  const stall = (): Promise<() => Promise<void>> => stallTable(databaseUrl, 'quota_reservations');
  const waiting = async (): Promise<number> => (await aside.query<unknown[]>(WAITING_FOR_LOCKS)).length;

  const rowsOf = ({ organizationId }: Customer): Promise<unknown> =>
    aside.query('SELECT required, charged FROM quota_reservations WHERE organization_id = $1', [organizationId]);

  it('a reservation that is granted after its call was refused is cancelled immediately', async () => {
    const customer = await database.newCustomer(10);
    const release = await stall();
    await expect(database.reserve(customer, 5)).rejects.toThrow(DatabaseSlowError);
    await release();
    await until(async () => JSON.stringify(await rowsOf(customer)) === JSON.stringify([{ required: 5, charged: 0 }]));
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 0, reserved: 0 });
  });

  it('a reservation that the server makes after its connection broke is cancelled', async () => {
    const customer = await database.newCustomer(10);
    const release = await stall();
    const reserving = database.reserve(customer, 5);
    await Promise.all([
      expect(reserving).rejects.toThrow(),
      until(async () => (await waiting()) === 1).then(() => link.cut()),
    ]);
    link.join();
    // The statement is still executed: the server detects the broken connection when it responds.
    expect(await waiting()).toBeGreaterThan(0);
    await release();
    await until(async () => (await waiting()) === 0);
    await until(async () => (await database.quota.usage(customer.organizationId)).reserved === 0);
    await until(async () => JSON.stringify(await rowsOf(customer)) === JSON.stringify([{ required: 5, charged: 0 }]));
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
  });

  describe('a reservation with an id that the service generated', () => {
    const reserve = async (id: string, customer: Customer, required: number): Promise<unknown> => {
      const [row] = await aside.query<{ reservation_id: string | null }[]>(
        'SELECT * FROM quota_reserve_within($1, 60, 50, 5000)',
        [reservationOf(id, customer, required)],
      );
      return row?.reservation_id;
    };
    const cancel = (id: string, customer: Customer): Promise<unknown> =>
      aside.query('SELECT quota_cancel($1)', [reservationOf(id, customer, 0)]);

    it.each([
      ['arrives after its cancellation', false],
      ['was made before its cancellation', true],
    ])('reserves nothing when it %s, for any number of repetitions', async (_order, isMade) => {
      const customer = await database.newCustomer(10);
      const id = randomUUID();
      if (isMade) expect(await reserve(id, customer, 5)).toBe(id);
      for (let repetition = 0; repetition < 2; repetition += 1) {
        await cancel(id, customer);
        expect(await reserve(id, customer, 5)).toBeNull();
      }
      await database.quota.settle(id, 5);
      expect(await rowsOf(customer)).toEqual([{ required: isMade ? 5 : 0, charged: 0 }]);
      expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 0, reserved: 0 });
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
    });
  });
});

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../until.js';
import { QuotaDatabase } from './quota-database.js';
import { Racer } from './racer.js';

const ATTEMPTS_PER_PROCESS = 100;
const USED_BEFORE = 5;

let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
afterAll(() => database.close());

describe('two processes that race for the remaining quota', () => {
  let racers: Racer[] = [];
  beforeAll(async () => {
    racers = await Promise.all([1, 2].map(() => Racer.prepare(database.url)));
  });
  afterAll(() => Promise.all(racers.map((racer) => racer.kill())));

  it.each([0, 1, 37])('are granted and charged exactly %i', async (left) => {
    const customer = await database.newCustomer(USED_BEFORE + left);
    await database.quota.settle(await database.reserved(customer, USED_BEFORE), USED_BEFORE);
    for (const racer of racers) racer.start(customer, ATTEMPTS_PER_PROCESS);
    const granted = await Promise.all(racers.map((racer) => racer.granted()));

    expect(granted.reduce((sum, count) => sum + count, 0)).toBe(left);
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({
      used: USED_BEFORE + left,
      reserved: 0,
      remaining: 0,
    });
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({
      exact: true,
      periods: [{ settledCalls: 1 + left }],
    });
  });

  // The last one, because it kills the processes.
  it('leave an exact usage when they are killed, and reservations that end with their lease', async () => {
    const customer = await database.newCustomer(1_000_000);
    for (const racer of racers) racer.start(customer, 0);
    await Promise.all(racers.map((racer) => racer.nextLine()));
    await Promise.all(racers.map((racer) => racer.kill()));
    // The database completes the statements that it had started for them.
    await until(async () => (await othersAtWork()) === 0);

    const { used, reserved } = await database.quota.usage(customer.organizationId);
    expect(used).toBeGreaterThanOrEqual(20);
    expect(reserved).toBeLessThanOrEqual(20);
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
    await database.setClock(new Date(Date.now() + 61_000));
    expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used, reserved: 0 });
  });
});

describe('a change of the limit', () => {
  it('applies to a reservation that had to wait for it', async () => {
    const customer = await database.newCustomer(10);
    const change = database.dataSource.createQueryRunner();
    await change.startTransaction();
    await change.query('UPDATE organizations SET monthly_limit = 4 WHERE id = $1', [customer.organizationId]);
    const waiting = database.reserve(customer, 5);
    await untilSomebodyWaits();
    await change.commitTransaction();
    await change.release();
    expect(await waiting).toMatchObject({ granted: false, quota: { limit: 4, reserved: 0 } });
  });
});

describe('a session at a stricter isolation level', () => {
  it('is refused, because its sums could predate its lock', async () => {
    const customer = await database.newCustomer(10);
    await expect(
      database.dataSource.transaction('REPEATABLE READ', (manager) =>
        manager.query("SELECT * FROM quota_reserve_as(gen_random_uuid(), $1, $2, 'r', 'UC', 1, 60, 50, 5000)", [
          customer.organizationId,
          customer.keyId,
        ]),
      ),
    ).rejects.toThrow('READ COMMITTED');
  });
});

async function othersAtWork(): Promise<number> {
  const [row] = await database.dataSource.query<{ count: number }[]>(`
    SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`);
  return row?.count ?? 0;
}

async function untilSomebodyWaits(): Promise<void> {
  for (;;) {
    const waiting = await database.dataSource.query<unknown[]>(`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    if (waiting.length > 0) return;
  }
}

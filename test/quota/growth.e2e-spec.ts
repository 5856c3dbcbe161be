import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Customer, QuotaDatabase, reservationOf } from './quota-database.js';

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

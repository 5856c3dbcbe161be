import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { DatabaseSlowError } from '../../src/database/database-errors.js';
import { until } from '../harness/until.js';
import { interruptibleLink, type InterruptibleLink } from '../database/interruptible-link.js';
import { stallTable, WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { createTestDatabase } from '../database/test-database.js';
import { useOwnTimeouts } from '../jest/wide-timeouts.js';
import { type Customer, QuotaDatabase, reservationOf } from './quota-database.js';

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

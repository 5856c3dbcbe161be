import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { DatabaseSlowError } from '../../src/database/database-errors.js';
import { until } from '../until.js';
import { QuotaDatabase } from './quota-database.js';

jest.setTimeout(20_000);

let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
afterAll(() => database.close());

it('a reservation that is granted when nobody waits for it any more is given back, not left to its lease', async () => {
  const customer = await database.newCustomer(10);
  const runner = database.dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query('SELECT 1 FROM organizations WHERE id = $1 FOR UPDATE', [customer.organizationId]);
  await expect(database.reserve(customer, 5)).rejects.toThrow(DatabaseSlowError);
  await runner.commitTransaction();
  await runner.release();
  const settled = async (): Promise<boolean> => {
    const rows = await database.dataSource.query<{ charged: number }[]>(
      'SELECT charged FROM quota_reservations WHERE organization_id = $1 AND settled_at IS NOT NULL',
      [customer.organizationId],
    );
    return rows.length === 1 && rows[0]?.charged === 0;
  };
  await until(settled);
  expect(await database.quota.usage(customer.organizationId)).toMatchObject({ used: 0, reserved: 0 });
});

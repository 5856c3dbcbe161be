import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ApiKey, generateKey, type IssuedKey } from '../../src/organizations/api-key.js';
import { InactiveKeyError } from '../../src/organizations/organization-errors.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../harness/until.js';

let database: QuotaDatabase;
let organizationId: string;
beforeAll(async () => {
  database = await QuotaDatabase.open();
  organizationId = (await database.newCustomer()).organizationId;
});
afterAll(() => database.close());

const issue = (): Promise<IssuedKey> => database.keys.issue({ organizationId, name: 'server' });
const authenticate = (key: string): Promise<unknown> => database.keys.authenticate(key);
const read = (id: string): Promise<ApiKey> => database.dataSource.getRepository(ApiKey).findOneByOrFail({ id });
const expire = (id: string): Promise<unknown> =>
  database.dataSource.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id]);

describe('a key', () => {
  it('identifies its organization, with its plan on the next call', async () => {
    const { organizationId: other } = await database.newCustomer(null, 'free');
    const { key, id } = await database.keys.issue({ organizationId: other });
    expect(await authenticate(key)).toEqual({
      keyId: id,
      organization: { id: other, name: 'Acme', plan: 'free' },
    });
    await database.organizations.change(other, { plan: 'pro' });
    expect(await authenticate(key)).toMatchObject({ organization: { plan: 'pro' } });
  });

  it('is refused when it was not issued, and without a query when it is malformed', async () => {
    expect(await authenticate(generateKey())).toBeUndefined();
    const query = jest.spyOn(database.dataSource, 'query');
    try {
      for (const key of ['', 'ctk_', 'Bearer x', `${generateKey()}x`, "' OR 1=1 --", 'ctk_\0']) {
        expect(await authenticate(key)).toBeUndefined();
      }
      expect(query).not.toHaveBeenCalled();
    } finally {
      query.mockRestore();
    }
  });

  it('is refused from the moment it expires', async () => {
    const { key, id, createdAt, expiresAt } = await database.keys.issue({ organizationId, expiresInDays: 1 });
    expect(expiresAt?.getTime()).toBe(createdAt.getTime() + 86_400_000);
    expect(await authenticate(key)).toBeDefined();
    await expire(id);
    expect(await authenticate(key)).toBeUndefined();
  });

  it('of a deleted organization is refused', async () => {
    const { organizationId: other } = await database.newCustomer();
    const { key } = await database.keys.issue({ organizationId: other });
    await database.dataSource.query('UPDATE organizations SET deleted_at = now() WHERE id = $1', [other]);
    expect(await authenticate(key)).toBeUndefined();
  });
});

describe('the last use of a key', () => {
  it('is written at most once a minute, for any number of concurrent calls', async () => {
    const { key, id } = await issue();
    const lastUse = async (): Promise<Date | null> => (await read(id)).lastUsedAt;
    await Promise.all(Array.from({ length: 20 }, () => authenticate(key)));
    await until(async () => (await lastUse()) !== null);
    const first = await lastUse();
    const query = jest.spyOn(database.dataSource, 'query');
    try {
      await authenticate(key);
      expect(query).toHaveBeenCalledTimes(1);
    } finally {
      query.mockRestore();
    }
    expect(await lastUse()).toEqual(first);
  });
});

describe('rotating a key', () => {
  it('never extends the old key, and gives the new key the same lifetime', async () => {
    const old = await database.keys.issue({ organizationId, expiresInDays: 1 });
    const { replaced, createdAt, expiresAt } = await database.keys.rotate(old.id, 100);
    expect(replaced.expiresAt).toEqual(old.expiresAt);
    expect(expiresAt?.getTime()).toBe(createdAt.getTime() + 86_400_000);
  });

  it('happens once for two concurrent requests', async () => {
    const { id } = await issue();
    const two = await Promise.allSettled([database.keys.rotate(id, 1), database.keys.rotate(id, 1)]);
    expect(two.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(database.keys.rotate(id, 1)).rejects.toBeInstanceOf(InactiveKeyError);
  });
});

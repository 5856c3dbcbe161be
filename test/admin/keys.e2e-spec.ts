import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ApiKey, generateKey, type IssuedKey } from '../../src/organizations/api-key.js';
import { InactiveKeyError, UnknownKeyError } from '../../src/organizations/organization-errors.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../until.js';

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

  it('is refused on the next call after revocation, and keeps its first revocation time', async () => {
    const { key, id } = await issue();
    const { revokedAt } = await database.keys.revoke(id);
    expect(await authenticate(key)).toBeUndefined();
    expect((await database.keys.revoke(id)).revokedAt).toEqual(revokedAt);
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
  it('issues a new key and keeps the old one valid for the grace period', async () => {
    const old = await issue();
    const { key, replaced, ...issued } = await database.keys.rotate(old.id, 2);
    expect(issued).toMatchObject({ organizationId, name: 'server', expiresAt: null });
    expect(replaced).toMatchObject({ id: old.id, revokedAt: null, replacedBy: issued.id });
    expect(replaced.expiresAt?.getTime()).toBe(issued.createdAt.getTime() + 2 * 3_600_000);
    expect(await authenticate(key)).toBeDefined();
    expect(await authenticate(old.key)).toBeDefined();
  });

  it('ends the old key immediately without a grace period', async () => {
    const old = await issue();
    const { key } = await database.keys.rotate(old.id, 0);
    expect(await authenticate(old.key)).toBeUndefined();
    expect(await authenticate(key)).toBeDefined();
  });

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

  it('is refused for a revoked and for an unknown key', async () => {
    const { id } = await issue();
    await database.keys.revoke(id);
    await expect(database.keys.rotate(id, 1)).rejects.toBeInstanceOf(InactiveKeyError);
    await expect(database.keys.rotate('key_none', 1)).rejects.toBeInstanceOf(UnknownKeyError);
  });
});

describe('revoking a key that replaced others', () => {
  it('reports the replaced keys that are still valid, newest first, and does not revoke them', async () => {
    const first = await issue();
    const second = await database.keys.rotate(first.id, 2);
    const third = await database.keys.rotate(second.id, 2);
    const stillValid = async (id: string): Promise<string[]> =>
      (await database.keys.revoke(id)).stillValid.map((each) => each.id);
    expect(await stillValid(third.id)).toEqual([second.id, first.id]);
    expect(await authenticate(first.key)).toBeDefined();
    expect(await stillValid(second.id)).toEqual([first.id]);
    await expire(first.id);
    expect(await stillValid(third.id)).toEqual([]);
  });
});

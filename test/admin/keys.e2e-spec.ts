import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { LastUsedRecorder } from '../../src/organizations/last-used-recorder.js';
import { ApiKey } from '../../src/organizations/api-key.entity.js';
import { generateKey, hashKey } from '../../src/organizations/api-key.js';
import type { IssuedKey } from '../../src/organizations/api-keys.service.js';
import {
  InactiveKeyError,
  InvalidLifetimeError,
  InvalidNameError,
  UnknownKeyError,
} from '../../src/organizations/organization-errors.js';
import { QuotaDatabase } from '../quota/quota-database.js';

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

describe('a key', () => {
  it('identifies its organization', async () => {
    const { key, apiKey } = await issue();
    expect(await authenticate(key)).toEqual({
      keyId: apiKey.id,
      organization: { id: organizationId, name: 'Acme', plan: 'pro' },
    });
  });

  it('reflects a change of plan on the next call', async () => {
    const { organizationId: other } = await database.newCustomer(null, 'free');
    const { key } = await database.keys.issue({ organizationId: other });
    expect(await authenticate(key)).toMatchObject({ organization: { plan: 'free' } });
    await database.organizations.setPlan(other, 'pro');
    expect(await authenticate(key)).toMatchObject({ organization: { plan: 'pro' } });
  });

  it('is refused without a query when malformed', async () => {
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

  it('is refused when it was not issued', async () => {
    expect(await authenticate(generateKey())).toBeUndefined();
  });

  it('is refused on the next call after revocation, and keeps its first revocation time', async () => {
    const { key, apiKey } = await issue();
    const { revoked } = await database.keys.revoke(apiKey.id);
    expect(await authenticate(key)).toBeUndefined();
    expect((await database.keys.revoke(apiKey.id)).revoked.revokedAt).toEqual(revoked.revokedAt);
  });

  it('is refused from the moment it expires', async () => {
    const { key, apiKey } = await database.keys.issue({ organizationId, expiresInDays: 1 });
    expect(apiKey.expiresAt?.getTime()).toBe(apiKey.createdAt.getTime() + 86_400_000);
    expect(await authenticate(key)).toBeDefined();
    await database.dataSource.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [apiKey.id]);
    expect(await authenticate(key)).toBeUndefined();
  });

  it('of a deleted organization is refused', async () => {
    const { organizationId: other } = await database.newCustomer();
    const { key } = await database.keys.issue({ organizationId: other });
    await database.dataSource.query('UPDATE organizations SET deleted_at = now() WHERE id = $1', [other]);
    expect(await authenticate(key)).toBeUndefined();
  });

  it('is never stored in plain text', async () => {
    const { key } = await issue();
    const rows = await database.dataSource.query<unknown[]>('SELECT * FROM api_keys');
    expect(JSON.stringify(rows)).not.toContain(key.slice(4));
    expect(await database.dataSource.getRepository(ApiKey).countBy({ hash: hashKey(key) })).toBe(1);
  });

  it.each([0, -1, 1.5, Number.NaN, 36_501])('cannot be issued for %d days', async (expiresInDays) => {
    await expect(database.keys.issue({ organizationId, expiresInDays })).rejects.toBeInstanceOf(InvalidLifetimeError);
  });

  it('requires a name of printable characters', async () => {
    await expect(database.keys.issue({ organizationId, name: 'a\nb' })).rejects.toBeInstanceOf(InvalidNameError);
  });
});

describe('revoking a key that replaced others', () => {
  it('reports the replaced keys that are still valid, newest first, and does not revoke them', async () => {
    const first = await issue();
    const second = await database.keys.rotate(first.apiKey.id, 2);
    const third = await database.keys.rotate(second.apiKey.id, 2);
    const names = async (id: string): Promise<string[]> =>
      (await database.keys.revoke(id)).stillValid.map((apiKey) => apiKey.id);
    expect(await names(third.apiKey.id)).toEqual([second.apiKey.id, first.apiKey.id]);
    expect(await authenticate(first.key)).toBeDefined();
    expect(await names(second.apiKey.id)).toEqual([first.apiKey.id]);
    expect(await names(third.apiKey.id)).toEqual([first.apiKey.id]);
    await database.dataSource.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [first.apiKey.id]);
    expect(await names(third.apiKey.id)).toEqual([]);
  });
});

describe('the last-used time of a key', () => {
  it('is written at most once a minute, for any number of concurrent calls', async () => {
    const { key, apiKey } = await issue();
    await Promise.all(Array.from({ length: 20 }, () => authenticate(key)));
    const first = await until(async () => (await read(apiKey.id)).lastUsedAt);
    await authenticate(key);
    await database.lastUsed.onApplicationShutdown();
    expect((await read(apiKey.id)).lastUsedAt).toEqual(first);
  });

  it('is written before shutdown, and a failure to write it affects no call', async () => {
    const use = new LastUsedRecorder(database.dataSource);
    const { apiKey } = await issue();
    use.record(apiKey.id);
    use.record('key_\0');
    await use.onApplicationShutdown();
    expect((await read(apiKey.id)).lastUsedAt).toBeInstanceOf(Date);
  });
});

describe('rotating a key', () => {
  it('issues a new key and keeps the old one valid for the grace period', async () => {
    const old = await issue();
    const { key, apiKey, replaced } = await database.keys.rotate(old.apiKey.id, 2);
    expect(apiKey).toMatchObject({ organizationId, name: 'server', expiresAt: null });
    expect(replaced).toMatchObject({ id: old.apiKey.id, revokedAt: null, replacedBy: apiKey.id });
    expect(replaced.expiresAt?.getTime()).toBe(apiKey.createdAt.getTime() + 2 * 3_600_000);
    expect(await authenticate(key)).toBeDefined();
    expect(await authenticate(old.key)).toBeDefined();
  });

  it('ends the old key immediately without a grace period', async () => {
    const old = await issue();
    const { key } = await database.keys.rotate(old.apiKey.id, 0);
    expect(await authenticate(old.key)).toBeUndefined();
    expect(await authenticate(key)).toBeDefined();
  });

  it('never extends the old key, and gives the new key the same lifetime', async () => {
    const old = await database.keys.issue({ organizationId, expiresInDays: 1 });
    const { apiKey, replaced } = await database.keys.rotate(old.apiKey.id, 100);
    expect(replaced.expiresAt).toEqual(old.apiKey.expiresAt);
    expect(apiKey.expiresAt?.getTime()).toBe(apiKey.createdAt.getTime() + 86_400_000);
  });

  it('happens once for two concurrent requests', async () => {
    const { apiKey } = await issue();
    const two = await Promise.allSettled([database.keys.rotate(apiKey.id, 1), database.keys.rotate(apiKey.id, 1)]);
    expect(two.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(database.keys.rotate(apiKey.id, 1)).rejects.toBeInstanceOf(InactiveKeyError);
  });

  it('is refused for a revoked and for an unknown key', async () => {
    const { apiKey } = await issue();
    await database.keys.revoke(apiKey.id);
    await expect(database.keys.rotate(apiKey.id, 1)).rejects.toBeInstanceOf(InactiveKeyError);
    await expect(database.keys.rotate('key_none', 1)).rejects.toBeInstanceOf(UnknownKeyError);
    await expect(database.keys.revoke('key_\0')).rejects.toBeInstanceOf(UnknownKeyError);
  });
});

async function until<Value>(look: () => Promise<Value | null>): Promise<Value> {
  for (;;) {
    const value = await look();
    if (value !== null) return value;
  }
}

import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
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

afterEach(() => database.clock.reset());

/** Where the clock of the database stops. */
const STOPPED_AT = new Date('2030-05-31T12:00:00Z');
const DAY_SECONDS = 86_400;
const after = (seconds: number): Date => new Date(STOPPED_AT.getTime() + seconds * 1_000);
const WAITING = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

const issue = (): Promise<IssuedKey> => database.keys.issue({ organizationId, name: 'server' });
const authenticate = (key: string): Promise<unknown> => database.keys.authenticate(key);
const read = (id: string): Promise<ApiKey> => database.dataSource.getRepository(ApiKey).findOneByOrFail({ id });
const expire = (id: string): Promise<unknown> =>
  database.dataSource.query('UPDATE api_keys SET expires_at = clock_now() WHERE id = $1', [id]);

describe('a key', () => {
  it('identifies its organization, with its plan on the next call', async () => {
    const { organizationId: other } = await database.newCustomer(null, 'free');
    const { key, id } = await database.keys.issue({ organizationId: other });
    expect(await authenticate(key)).toEqual({
      ...{ keyId: id, kind: 'key', scopes: ['read', 'write'] },
      organization: { id: other, name: 'Acme', plan: 'free', keeps: false },
    });
    await database.organizations.change(other, { plan: 'pro' });
    expect(await authenticate(key)).toMatchObject({ organization: { plan: 'pro' } });
  });

  it('is refused when it was not issued, and without a query when it is malformed', async () => {
    expect(await authenticate(generateKey())).toBe('unknown');
    const query = jest.spyOn(database.dataSource, 'query');
    try {
      for (const key of ['', 'ctk_', 'Bearer x', `${generateKey()}x`, "' OR 1=1 --", 'ctk_\0']) {
        expect(await authenticate(key)).toBe('malformed');
      }
      expect(query).not.toHaveBeenCalled();
    } finally {
      query.mockRestore();
    }
  });

  it('is refused from the moment it expires', async () => {
    const { key, id, createdAt, expiresAt } = await database.keys.issue({ organizationId, expiresInDays: 1 });
    expect(expiresAt?.getTime()).toBe(createdAt.getTime() + 86_400_000);
    expect(await authenticate(key)).toHaveProperty('keyId');
    await expire(id);
    expect(await authenticate(key)).toBe('expired');
  });

  it('expires by the clock of the database, from which it has all of its times', async () => {
    await database.clock.stop(STOPPED_AT);
    const { key, id, createdAt, expiresAt } = await database.keys.issue({ organizationId, expiresInDays: 1 });
    expect([createdAt, expiresAt]).toEqual([STOPPED_AT, after(DAY_SECONDS)]);
    await database.clock.move(DAY_SECONDS - 1);
    expect(await authenticate(key)).toHaveProperty('keyId');
    await until(async () => (await read(id)).lastUsedAt !== null);
    expect((await read(id)).lastUsedAt).toEqual(after(DAY_SECONDS - 1));
    await database.clock.move(1);
    expect(await authenticate(key)).toBe('expired');
    expect(await database.keys.revoke(id)).toMatchObject({ revokedAt: after(DAY_SECONDS), stillValid: [] });
  });

  it('that has expired by that clock is not counted when its organization is deleted, at the time of the clock', async () => {
    await database.clock.stop(STOPPED_AT);
    const { organizationId: other, keyId } = await database.newCustomer();
    expect((await database.organizations.get(other)).createdAt).toEqual(STOPPED_AT);
    await database.keys.issue({ organizationId: other, expiresInDays: 1 });
    await database.clock.move(DAY_SECONDS);
    const [deletedAt, revokedKeys] = [after(DAY_SECONDS), 1];
    expect(await database.organizations.delete(other)).toMatchObject({ deletedAt, revokedKeys });
    expect((await read(keyId)).revokedAt).toEqual(deletedAt);
  });

  it('of a deleted organization is refused', async () => {
    const { organizationId: other } = await database.newCustomer();
    const { key } = await database.keys.issue({ organizationId: other });
    await database.dataSource.query('UPDATE organizations SET deleted_at = clock_now() WHERE id = $1', [other]);
    expect(await authenticate(key)).toBe('revoked');
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
    await database.clock.move(61);
    await authenticate(key);
    await until(async () => (await lastUse())?.getTime() !== first?.getTime());
  });
});

describe('rotating a key', () => {
  it('never extends the old key, and gives the new key the same lifetime', async () => {
    const old = await database.keys.issue({ organizationId, expiresInDays: 1 });
    const { replaced, createdAt, expiresAt } = await database.keys.rotate(old.id, 100);
    expect(replaced.expiresAt).toEqual(old.expiresAt);
    expect(expiresAt?.getTime()).toBe(createdAt.getTime() + 86_400_000);
  });

  it('leaves the old key valid for the grace period by the clock of the database, which begins after the wait for the lock', async () => {
    const old = await issue();
    const lock = database.dataSource.createQueryRunner();
    await lock.startTransaction();
    await lock.query('SELECT organization_lock($1)', [organizationId]);
    const rotating = database.keys.rotate(old.id, 1);
    await until(async () => (await database.dataSource.query(WAITING)).length === 1);
    await database.clock.stop(STOPPED_AT);
    await lock.commitTransaction();
    await lock.release();
    const { id, replaced } = await rotating;
    expect(replaced.expiresAt).toEqual(after(3_600));
    await database.clock.move(3_599);
    expect(await authenticate(old.key)).toHaveProperty('keyId');
    expect(await database.keys.revoke(id)).toMatchObject({ stillValid: [{ id: old.id }] });
    await database.clock.move(1);
    expect(await authenticate(old.key)).toBe('expired');
    expect((await database.keys.revoke(id)).stillValid).toEqual([]);
  });

  it('without a grace period revokes the old key at the time of that clock, and is refused of an expired one', async () => {
    await database.clock.stop(STOPPED_AT);
    const [one, other] = [await issue(), await database.keys.issue({ organizationId, expiresInDays: 1 })];
    expect((await database.keys.rotate(one.id, 0)).replaced.revokedAt).toEqual(STOPPED_AT);
    await database.clock.move(DAY_SECONDS);
    await expect(database.keys.rotate(other.id, 1)).rejects.toBeInstanceOf(InactiveKeyError);
  });

  it('happens once for two concurrent requests', async () => {
    const { id } = await issue();
    const two = await Promise.allSettled([database.keys.rotate(id, 1), database.keys.rotate(id, 1)]);
    expect(two.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(database.keys.rotate(id, 1)).rejects.toBeInstanceOf(InactiveKeyError);
  });
});

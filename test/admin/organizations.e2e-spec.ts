import { afterAll, beforeAll, describe, expect, it, afterEach, jest } from '@jest/globals';
import { UnknownCursorError } from '../../src/domain/page.js';
import { UnknownOrganizationError, InactiveKeyError } from '../../src/organizations/organization-errors.js';
import type { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { ApiKey, generateKey, type IssuedKey } from '../../src/organizations/api-key.js';
import { until } from '../harness/until.js';

describe('organizations', () => {
  let database: QuotaDatabase;
  let organizations: OrganizationsService;

  beforeAll(async () => {
    database = await QuotaDatabase.open();
    organizations = database.organizations;
  });
  afterAll(() => database.close());
  const create = async (name: string): Promise<string> => (await organizations.create({ name, plan: 'pro' })).id;

  it('are listed in pages, each organization once, oldest first', async () => {
    expect(await organizations.isEmpty()).toBe(true);
    const made: string[] = [];
    for (let count = 0; count < 5; count += 1) made.push(await create(`Page ${count}`));
    const listed: string[] = [];
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<OrganizationsService['list']>> = await organizations.list({ limit: 2, after });
      expect(page.items.length).toBeLessThanOrEqual(2);
      listed.push(...page.items.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(listed).toEqual(made);
    expect(await organizations.isEmpty()).toBe(false);
  });

  it('are none when all are deleted', async () => {
    const { items } = await organizations.list({ limit: 1_000 });
    for (const one of items) await organizations.delete(one.id);
    expect(await organizations.isEmpty()).toBe(true);
  });

  it('are none when only that of the commands exists', async () => {
    const { dataSource } = database;
    await dataSource.query(`INSERT INTO organizations (id, name, plan) VALUES ('org_commands', 'Commands', 'pro')`);
    expect(await organizations.isEmpty()).toBe(true);
    await dataSource.query(`DELETE FROM organizations WHERE id = 'org_commands'`);
  });

  it('are listed after the id of an existing or deleted organization only', async () => {
    const [id, later] = [await create('Cursor'), await create('Later')];
    await organizations.delete(id);
    expect((await organizations.list({ limit: 1, after: id })).items).toMatchObject([{ id: later }]);
    for (const after of ['org_none', '\0'])
      await expect(organizations.list({ limit: 1, after })).rejects.toBeInstanceOf(UnknownCursorError);
  });

  it('are listed by a part of the name in any letter case, page by page', async () => {
    const ids = [await create('Käseglocke GmbH'), await create('100% KÄSE_x')];
    const deleted = await create('käse');
    await organizations.delete(deleted);
    const { items, next } = await organizations.list({ limit: 1 }, ' käse ');
    expect([items.map(({ id }) => id), next]).toEqual([ids.slice(0, 1), ids[0]]);
    expect((await organizations.list({ limit: 1, after: String(next) }, 'käse')).items.map(({ id }) => id)).toEqual([
      ids[1],
    ]);
    expect((await organizations.list({ limit: 9 }, '% k')).items).toMatchObject([{ name: '100% KÄSE_x' }]);
    expect((await organizations.list({ limit: 9 }, 's%e')).items).toEqual([]);
    for (const name of ['', '\0', 'x'.repeat(101)])
      await expect(organizations.list({ limit: 9 }, name)).rejects.toThrow('name must have 1 to 100 characters');
  });

  it('are found by id and by a unique name', async () => {
    const { id } = await organizations.create({ name: ' Unique ', plan: 'free', monthlyLimit: 0 });
    for (const text of [id, 'Unique', ' Unique ']) {
      expect(await organizations.find(text)).toMatchObject({ id, name: 'Unique', plan: 'free', monthlyLimit: 0 });
    }
    const [twin, other] = [await create('Twin'), await create('Twin')];
    await expect(organizations.find('Twin')).rejects.toThrow(`${twin} or ${other}`);
  });

  it('are not found after deletion, except by ID for their usage', async () => {
    const id = await create('Gone');
    await organizations.delete(id);
    for (const text of [id, 'Gone'])
      await expect(organizations.find(text)).rejects.toBeInstanceOf(UnknownOrganizationError);
    expect((await organizations.list({ limit: 100 })).items.map((one) => one.id)).not.toContain(id);
    expect(await organizations.find(id, { deleted: true })).toMatchObject({ id });
    await expect(organizations.find('Gone', { deleted: true })).rejects.toBeInstanceOf(UnknownOrganizationError);
  });

  it('lose their keys immediately on deletion but retain their settled calls, and running calls are settled', async () => {
    const customer = await database.newCustomer(10);
    const { organizationId } = customer;
    const { key } = await database.keys.issue({ organizationId });
    await database.quota.settle(await database.reserved(customer, 3), 3);
    const running = await database.reserved(customer, 5);
    expect(await organizations.delete(organizationId)).toMatchObject({ id: organizationId, revokedKeys: 2 });
    expect(await database.keys.authenticate(key)).toBe('revoked');
    for (const refused of [
      () => organizations.delete(organizationId),
      () => organizations.change(organizationId, { monthlyLimit: 5 }),
    ])
      await expect(refused()).rejects.toBeInstanceOf(UnknownOrganizationError);
    await database.quota.settle(running, 4);
    expect(await database.quota.verify(organizationId)).toMatchObject({
      exact: true,
      periods: [{ used: 7, recomputed: 7, settledCalls: 2 }],
    });
  });

  it('have no valid key after a deletion that runs while keys are issued and rotated', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { organizationId, keyId } = await database.newCustomer();
      const made = await Promise.allSettled([
        database.keys.issue({ organizationId }),
        database.keys.rotate(keyId, 1),
        organizations.delete(organizationId),
        database.keys.issue({ organizationId }),
      ]);
      expect(made[2].status).toBe('fulfilled');
      const [{ good } = { good: -1 }] = await database.dataSource.query<{ good: number }[]>(
        'SELECT count(*)::integer AS good FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL',
        [organizationId],
      );
      expect(good).toBe(0);
      for (const one of made) {
        if (one.status === 'rejected') expect(String(one.reason)).toMatch(/UnknownOrganization|InactiveKey/);
      }
    }
  });
});

describe('keys', () => {
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
});

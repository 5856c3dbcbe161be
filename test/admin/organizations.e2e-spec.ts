import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UnknownCursorError } from '../../src/domain/page.js';
import { UnknownOrganizationError } from '../../src/organizations/organization-errors.js';
import type { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaDatabase } from '../quota/quota-database.js';

let database: QuotaDatabase;
let organizations: OrganizationsService;
beforeAll(async () => {
  database = await QuotaDatabase.open();
  organizations = database.organizations;
});
afterAll(() => database.close());

const create = async (name: string): Promise<string> => (await organizations.create({ name, plan: 'pro' })).id;

describe('organizations', () => {
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

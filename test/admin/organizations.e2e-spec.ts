import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  AmbiguousOrganizationError,
  EmptyChangeError,
  InvalidLimitError,
  InvalidNameError,
  UnknownCursorError,
  UnknownOrganizationError,
  UnknownPlanError,
} from '../../src/organizations/organization-errors.js';
import { generateKey } from '../../src/organizations/api-key.js';
import type { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaDatabase } from '../quota/quota-database.js';

let database: QuotaDatabase;
let organizations: OrganizationsService;
beforeAll(async () => {
  database = await QuotaDatabase.open();
  organizations = database.organizations;
});
afterAll(() => database.close());

describe('organizations', () => {
  it('are listed in pages, each organization once, oldest first', async () => {
    expect(await organizations.isEmpty()).toBe(true);
    const made: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      made.push((await organizations.create({ name: `Page ${count}`, plan: 'pro' })).id);
    }
    const listed: string[] = [];
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<OrganizationsService['list']>> = await organizations.list({ count: 2, after });
      expect(page.items.length).toBeLessThanOrEqual(2);
      listed.push(...page.items.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(listed).toEqual(made);
    expect(await organizations.isEmpty()).toBe(false);
  });

  it('are found by id and by a unique name', async () => {
    const { id } = await organizations.create({ name: ' Unique ', plan: 'free', monthlyLimit: 0 });
    for (const text of [id, 'Unique', ' Unique ']) {
      expect(await organizations.find(text)).toMatchObject({ id, name: 'Unique', plan: 'free', monthlyLimit: 0 });
    }
  });

  it('with the same name are distinguished by id', async () => {
    const { id } = await organizations.create({ name: 'Twin', plan: 'pro' });
    const { id: other } = await organizations.create({ name: 'Twin', plan: 'pro' });
    const finding = organizations.find('Twin');
    await expect(finding).rejects.toBeInstanceOf(AmbiguousOrganizationError);
    await expect(finding).rejects.toThrow(`${id}, ${other}`);
    await organizations.setPlan(other, 'free');
    expect((await organizations.find(id)).plan).toBe('pro');
  });

  it('are not found after deletion', async () => {
    const { id } = await organizations.create({ name: 'Gone', plan: 'pro' });
    await organizations.delete(id);
    await expect(organizations.find(id)).rejects.toBeInstanceOf(UnknownOrganizationError);
    await expect(organizations.find('Gone')).rejects.toBeInstanceOf(UnknownOrganizationError);
    expect((await organizations.list({ count: 100 })).items.map((one) => one.id)).not.toContain(id);
    const successor = await organizations.create({ name: 'Gone', plan: 'pro' });
    expect(await organizations.findIncludingDeleted(id)).toMatchObject({ id });
    expect(await organizations.findIncludingDeleted('Gone')).toMatchObject({ id: successor.id });
    await organizations.delete(successor.id);
    await expect(organizations.findIncludingDeleted('Gone')).rejects.toBeInstanceOf(UnknownOrganizationError);
  });

  it('lose their keys immediately on deletion but retain their settled calls, and running calls are settled', async () => {
    const customer = await database.newCustomer(10);
    const { organizationId } = customer;
    const { key } = await database.keys.issue({ organizationId });
    await database.quota.settle(await database.reserved(customer, 3), 3);
    const running = await database.reserved(customer, 5);
    expect(await organizations.delete(organizationId)).toMatchObject({
      organization: { id: organizationId },
      revokedKeys: 2,
    });
    expect(await database.keys.authenticate(key)).toBeUndefined();
    await expect(database.reserve(customer, 0)).rejects.toBeInstanceOf(UnknownOrganizationError);
    await expect(organizations.delete(organizationId)).rejects.toBeInstanceOf(UnknownOrganizationError);
    await expect(organizations.setLimit(organizationId, 5)).rejects.toBeInstanceOf(UnknownOrganizationError);
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

  it('are listed after the id of an existing or deleted organization only', async () => {
    const { id } = await organizations.create({ name: 'Cursor', plan: 'pro' });
    const { id: later } = await organizations.create({ name: 'Later', plan: 'pro' });
    await organizations.delete(id);
    expect((await organizations.list({ count: 1, after: id })).items).toMatchObject([{ id: later }]);
    await expect(organizations.list({ count: 1, after: 'org_none' })).rejects.toBeInstanceOf(UnknownCursorError);
  });

  it('are changed completely or not at all', async () => {
    const { id } = await organizations.create({ name: 'Whole', plan: 'free' });
    await expect(organizations.change(id, { plan: 'pro', monthlyLimit: -1 })).rejects.toBeInstanceOf(InvalidLimitError);
    await expect(organizations.change(id, {})).rejects.toBeInstanceOf(EmptyChangeError);
    expect(await organizations.get(id)).toMatchObject({ plan: 'free', monthlyLimit: null });
    expect(await organizations.change(id, { plan: 'pro', monthlyLimit: 4 })).toMatchObject({
      plan: 'pro',
      monthlyLimit: 4,
    });
  });

  it('are reported as unknown when they do not exist, and a key given instead of an id is not echoed', async () => {
    const key = generateKey();
    await expect(organizations.find('nobody')).rejects.toThrow('No organization has the ID or name "nobody".');
    await expect(organizations.find('a\0b')).rejects.toBeInstanceOf(UnknownOrganizationError);
    const error: unknown = await organizations.find(key).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnknownOrganizationError);
    expect(String(error)).not.toContain(key.slice(0, 15));
  });

  it.each([-1, 1.5, Number.NaN, 2_147_483_648])('cannot have a monthly limit of %d', async (monthlyLimit) => {
    await expect(organizations.create({ name: 'A', plan: 'pro', monthlyLimit })).rejects.toBeInstanceOf(
      InvalidLimitError,
    );
  });

  it('require a name and an existing plan', async () => {
    await expect(organizations.create({ name: 'A', plan: 'gold' })).rejects.toBeInstanceOf(UnknownPlanError);
    await expect(organizations.create({ name: ' ', plan: 'pro' })).rejects.toBeInstanceOf(InvalidNameError);
  });
});

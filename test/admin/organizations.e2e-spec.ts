import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  AmbiguousOrganizationError,
  InvalidLimitError,
  InvalidNameError,
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
  it('are listed by pages, each once, the oldest first', async () => {
    expect(await organizations.isEmpty()).toBe(true);
    const made: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      made.push((await organizations.create({ name: `Page ${count}`, plan: 'pro' })).id);
    }
    const listed: string[] = [];
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<OrganizationsService['list']>> = await organizations.list({ count: 2, after });
      expect(page.organizations.length).toBeLessThanOrEqual(2);
      listed.push(...page.organizations.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(listed).toEqual(made);
    expect(await organizations.isEmpty()).toBe(false);
  });

  it('are found by id and by a name that only one has', async () => {
    const { id } = await organizations.create({ name: ' Unique ', plan: 'free', monthlyLimit: 0 });
    for (const text of [id, 'Unique', ' Unique ']) {
      expect(await organizations.find(text)).toMatchObject({ id, name: 'Unique', plan: 'free', monthlyLimit: 0 });
    }
  });

  it('of one name are told apart by id', async () => {
    const { id } = await organizations.create({ name: 'Twin', plan: 'pro' });
    const { id: other } = await organizations.create({ name: 'Twin', plan: 'pro' });
    const finding = organizations.find('Twin');
    await expect(finding).rejects.toBeInstanceOf(AmbiguousOrganizationError);
    await expect(finding).rejects.toThrow(`${id}, ${other}`);
    await organizations.setPlan(other, 'free');
    expect((await organizations.find(id)).plan).toBe('pro');
  });

  it('that were deleted are found no more', async () => {
    const { id } = await organizations.create({ name: 'Gone', plan: 'pro' });
    await database.dataSource.query('UPDATE organizations SET deleted_at = now() WHERE id = $1', [id]);
    await expect(organizations.find(id)).rejects.toBeInstanceOf(UnknownOrganizationError);
    await expect(organizations.find('Gone')).rejects.toBeInstanceOf(UnknownOrganizationError);
    expect((await organizations.list({ count: 100 })).organizations.map((one) => one.id)).not.toContain(id);
  });

  it('that nobody made are unknown, and a key given by mistake is not repeated', async () => {
    const key = generateKey();
    await expect(organizations.find('nobody')).rejects.toThrow(
      'There is no organization with the id or name "nobody".',
    );
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

  it('need a plan that exists and a name', async () => {
    await expect(organizations.create({ name: 'A', plan: 'gold' })).rejects.toBeInstanceOf(UnknownPlanError);
    await expect(organizations.create({ name: ' ', plan: 'pro' })).rejects.toBeInstanceOf(InvalidNameError);
  });
});

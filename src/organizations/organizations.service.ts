import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, IsNull, Not, Raw, type Repository } from 'typeorm';
import { sqlStateOf } from '../database/database-errors.js';
import { quoted, redactApiKeys } from '../domain/api-key-text.js';
import type { Actor } from '../domain/caller.js';
import { invalidField } from '../domain/errors.js';
import type { Page, PageRequest } from '../domain/page.js';
import type { Plan } from '../domain/plan.js';
import { recordChange } from '../audit/audit-trail.js';
import {
  EXTERNAL_ID_LENGTH_MAX,
  NAME_LENGTH_MAX,
  normalizedText,
  COMMANDS_ORGANIZATION_ID,
  Organization,
  type CreatedOrganization,
  type DeletedOrganization,
} from './organization.entity.js';
import { ExternalIdTakenError, UnknownOrganizationError } from './organization-errors.js';
import { readPage } from '../database/read-page.js';

interface NewOrganization {
  name: string;
  plan: Plan;
  /** Transcripts per month; null for the limit of the plan. */
  monthlyLimit?: number | null | undefined;
  /** The value of the claim by which tokens name it; null for none. */
  externalId?: string | null | undefined;
}

/** Undefined values do not change. */
type OrganizationChange = Partial<Pick<NewOrganization, 'plan' | 'monthlyLimit' | 'externalId'>>;

const LISTED = { deletedAt: IsNull() };
const SAME_NAME_MAX = 10;
const UNIQUE_VIOLATION = '23505';

const AUDITED_FIELDS = [
  ['plan', 'organization.plan_changed'],
  ['monthlyLimit', 'organization.limit_changed'],
  ['externalId', 'organization.external_id_changed'],
] as const;

/** Creates, finds, updates and deletes organizations. A change is recorded in the audit trail for the `actor` who makes it. */
@Injectable()
export class OrganizationsService {
  private readonly organizations: Repository<Organization>;

  constructor(private readonly database: DataSource) {
    this.organizations = database.getRepository(Organization);
  }

  /**
   * Creates an organization, also with a name that others have.
   *
   * @throws InvalidRequestError for an invalid name or external ID, ExternalIdTakenError
   */
  async create(
    { name, plan, monthlyLimit = null, externalId = null }: NewOrganization,
    actor?: Actor,
  ): Promise<CreatedOrganization> {
    const id = `org_${randomBytes(12).toString('hex')}`;
    const created = { name: parseDisplayName(name), plan, monthlyLimit, externalId: parseExternalId(externalId) };
    await this.inTransaction(externalId, async (manager) => {
      await manager.insert(Organization, { id, ...created, createdAt: () => 'clock_now()' });
      const change = { action: 'organization.created', organizationId: id, target: id, before: null } as const;
      await recordChange(manager, actor, { ...change, after: created });
    });
    const others = await this.organizations.find({
      where: { name: created.name, deletedAt: IsNull(), id: Not(id) },
      order: { createdAt: 'ASC', id: 'ASC' },
      take: SAME_NAME_MAX,
    });
    return { ...(await this.get(id)), ...(others.length > 0 && { sameName: others.map((other) => other.id) }) };
  }

  /**
   * Lists organizations, oldest first.
   *
   * @param name a part of their names, without case
   * @throws UnknownCursorError, InvalidRequestError for a text that no name has
   */
  async list(page: PageRequest, name?: string): Promise<Page<Organization>> {
    if (name === undefined) return readPage(this.organizations, LISTED, page);
    const part = parseDisplayName(name);
    // The locale of the embedded database knows the case of ASCII only.
    const lower = (text: string): string => `lower(${text} COLLATE "und-x-icu")`;
    const named = Raw((column) => `strpos(${lower(column)}, ${lower(':part')}) > 0`, { part });
    return readPage(this.organizations, { ...LISTED, name: named }, page);
  }

  /** Whether there is none but that of the commands, which has no keys. */
  async isEmpty(): Promise<boolean> {
    return !(await this.organizations.existsBy({ ...LISTED, id: Not(COMMANDS_ORGANIZATION_ID) }));
  }

  /**
   * Finds an organization by ID.
   *
   * @param options.deleted whether a deleted one is found as well, because its usage remains available
   * @throws UnknownOrganizationError
   */
  async get(id: string, { deleted = false } = {}): Promise<Organization> {
    const found = await this.findById(id, deleted);
    if (!found) throw new UnknownOrganizationError(id);
    return found;
  }

  /**
   * Finds an organization by ID or name, a deleted one by ID only.
   *
   * @throws UnknownOrganizationError, InvalidRequestError when more than one has the name
   */
  async find(idOrName: string, { deleted = false } = {}): Promise<Organization> {
    const byId = await this.findById(idOrName, deleted);
    if (byId) return byId;
    const [first, second] = await this.organizations.find({
      where: { name: idOrName.trim().normalize('NFC'), deletedAt: IsNull() },
      order: { createdAt: 'ASC', id: 'ASC' },
      take: 2,
    });
    if (!first) throw new UnknownOrganizationError(idOrName);
    if (!second) return first;
    const message = `More than one organization is named ${quoted(first.name)}. Use an ID, such as ${first.id} or ${second.id}.`;
    throw invalidField('organization', message);
  }

  /**
   * Changes the plan, the limit or the external ID. Takes effect with the next reservation or call. A change to the same value
   * is not recorded.
   *
   * @throws UnknownOrganizationError, InvalidRequestError for an invalid external ID, ExternalIdTakenError
   */
  async change(id: string, change: OrganizationChange, actor?: Actor): Promise<Organization> {
    await this.get(id);
    const { externalId } = change;
    const wanted = { ...change, ...(externalId !== undefined && { externalId: parseExternalId(externalId) }) };
    const changing = async (manager: EntityManager): Promise<Organization> => {
      const lock = { mode: 'for_no_key_update' } as const;
      const before = await manager.findOne(Organization, { where: { id, deletedAt: IsNull() }, lock });
      if (!before) throw new UnknownOrganizationError(id);
      for (const [field, action] of AUDITED_FIELDS) {
        const value = wanted[field];
        if (value === undefined || value === before[field]) continue;
        await manager.update(Organization, { id }, { [field]: value });
        const values = { before: { [field]: before[field] }, after: { [field]: value } };
        await recordChange(manager, actor, { action, organizationId: id, target: id, ...values });
      }
      return manager.findOneByOrFail(Organization, { id });
    };
    return this.inTransaction(externalId, changing);
  }

  /**
   * Deletes an organization and revokes its keys. Running calls are still settled, and the usage remains available by ID.
   *
   * @throws UnknownOrganizationError
   */
  async delete(id: string, actor?: Actor): Promise<DeletedOrganization> {
    const organization = await this.get(id);
    const deleting = async (manager: EntityManager): Promise<DeletedOrganization> => {
      // First, because issuing a key and reserving quota lock this row, and then see that the organization is deleted.
      const [[deleted]] = await manager.query<[{ deleted_at: Date }[], number]>(DELETE, [id]);
      if (!deleted) throw new UnknownOrganizationError(id);
      const [, revokedKeys] = await manager.query<[unknown[], number]>(REVOKE_ALL, [id]);
      const { name, plan, monthlyLimit, externalId } = organization;
      const before = { name, plan, monthlyLimit, externalId };
      const change = { action: 'organization.deleted', organizationId: id, target: id } as const;
      await recordChange(manager, actor, { ...change, before, after: { revokedKeys } });
      return { ...organization, deletedAt: deleted.deleted_at, revokedKeys };
    };
    return this.database.transaction(deleting);
  }

  /** Runs a change, whose external ID another organization may have. */
  private async inTransaction<T>(
    externalId: string | null | undefined,
    change: (manager: EntityManager) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.database.transaction(change);
    } catch (error) {
      if (externalId && sqlStateOf(error) === UNIQUE_VIOLATION) throw new ExternalIdTakenError(externalId);
      throw error;
    }
  }

  private async findById(id: string, deleted: boolean): Promise<Organization | null> {
    // PostgreSQL rejects queries with this character in a text parameter.
    if (id.includes('\0')) return null;
    return this.organizations.findOneBy({ id, ...(!deleted && { deletedAt: IsNull() }) });
  }
}

const DELETE = `
  UPDATE organizations SET deleted_at = clock_now() WHERE id = $1 AND deleted_at IS NULL RETURNING deleted_at`;

// Excludes expired keys, because `revokedKeys` counts those that were valid, and token clients, which only an operator blocks.
const REVOKE_ALL = `
  UPDATE api_keys SET revoked_at = clock_now()
    WHERE organization_id = $1 AND kind = 'key' AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > clock_now())`;

/**
 * Normalizes the name of an organization or a key, or an external ID.
 *
 * @throws InvalidRequestError unless it has 1 to `lengthMax` characters, none of them a control character, and contains no API key
 */
export function parseDisplayName(text: string, field = 'name', lengthMax = NAME_LENGTH_MAX): string {
  const name = normalizedText(text, lengthMax);
  if (name === undefined) {
    throw invalidField(field, `${field} must have 1 to ${lengthMax} characters and no control characters.`);
  }
  // Names are stored and displayed; keys must never be.
  if (redactApiKeys(name) !== name) throw invalidField(field, `${field} must not contain an API key.`);
  return name;
}

function parseExternalId(text: string | null): string | null {
  return text === null ? null : parseDisplayName(text, 'externalId', EXTERNAL_ID_LENGTH_MAX);
}

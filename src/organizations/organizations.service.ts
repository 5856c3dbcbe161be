import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, IsNull } from 'typeorm';
import { retryConflicts } from '../database/query-with-deadline.js';
import type { Actor } from '../domain/caller.js';
import { recordChange } from './audit-trail.js';
import { checkMonthlyLimit, parseName, parsePlan } from './input-rules.js';
import {
  AmbiguousOrganizationError,
  EmptyChangeError,
  UnknownCursorError,
  UnknownOrganizationError,
} from './organization-errors.js';
import { Organization } from './organization.entity.js';
import { toPage, type Page, type PageRequest } from './page.js';

interface NewOrganization {
  name: string;
  plan: string;
  /** Transcripts per month; null for the limit of the plan. */
  monthlyLimit?: number | null;
}

/** An update of an organization. Undefined values do not change. */
interface OrganizationChange {
  plan?: string | undefined;
  /** Transcripts per month; null for the limit of the plan. */
  monthlyLimit?: number | null | undefined;
}

export interface DeletedOrganization {
  organization: Organization;
  deletedAt: Date;
  /** The number of keys that were valid until the deletion. */
  revokedKeys: number;
}

/** The maximum number of IDs in the error of an ambiguous name. */
const AMBIGUOUS_IDS_MAX = 5;

/** A change to the same value is not recorded. */
const AUDITED_FIELDS = [
  ['plan', 'organization.plan_changed'],
  ['monthlyLimit', 'organization.limit_changed'],
] as const;

/** Creates, finds, updates and deletes organizations. A change is recorded in the audit trail for the `actor` who makes it. */
@Injectable()
export class OrganizationsService {
  constructor(private readonly database: DataSource) {}

  /** @throws InvalidNameError, UnknownPlanError, InvalidLimitError */
  async create({ name, plan, monthlyLimit = null }: NewOrganization, actor?: Actor): Promise<Organization> {
    const id = `org_${randomBytes(12).toString('hex')}`;
    const created = { name: parseName(name), plan: parsePlan(plan), monthlyLimit: checkMonthlyLimit(monthlyLimit) };
    await this.database.transaction(async (manager) => {
      await manager.insert(Organization, { id, ...created });
      const change = { action: 'organization.created', organizationId: id, target: id, before: null } as const;
      await recordChange(manager, actor, { ...change, after: created });
    });
    return this.find(id);
  }

  /** Lists organizations, oldest first. @throws UnknownCursorError */
  async list({ count, after = null }: PageRequest): Promise<Page<Organization>> {
    const query = this.organizations()
      .createQueryBuilder('organization')
      .where('organization.deletedAt IS NULL')
      .orderBy('organization.createdAt')
      .addOrderBy('organization.id')
      .limit(count + 1);
    if (after !== null) {
      if (!(await this.findById(after))) throw new UnknownCursorError(after);
      query.andWhere(
        '(organization.createdAt, organization.id) > (SELECT created_at, id FROM organizations WHERE id = :after)',
        { after },
      );
    }
    return toPage(await query.getMany(), count);
  }

  /** Whether no organization exists. */
  async isEmpty(): Promise<boolean> {
    return !(await this.organizations().existsBy({ deletedAt: IsNull() }));
  }

  /**
   * Finds an organization by ID or name, a deleted one by ID only, because its usage remains available.
   *
   * @throws UnknownOrganizationError, AmbiguousOrganizationError when more than one has the name
   */
  async findIncludingDeleted(idOrName: string): Promise<Organization> {
    const byId = await this.findById(idOrName);
    return byId ?? this.find(idOrName);
  }

  /** Finds an organization by ID, deleted or not. @throws UnknownOrganizationError */
  async getIncludingDeleted(id: string): Promise<Organization> {
    const found = await this.findById(id);
    if (!found) throw new UnknownOrganizationError(id);
    return found;
  }

  /** Finds an organization by ID or name. @throws UnknownOrganizationError, AmbiguousOrganizationError */
  async find(idOrName: string): Promise<Organization> {
    // PostgreSQL rejects queries with this character in a text parameter.
    if (idOrName.includes('\0')) throw new UnknownOrganizationError(idOrName);
    const byId = await this.organizations().findOneBy({ id: idOrName, deletedAt: IsNull() });
    if (byId) return byId;
    const [first, ...others] = await this.organizations().find({
      where: { name: idOrName.trim(), deletedAt: IsNull() },
      order: { createdAt: 'ASC', id: 'ASC' },
      take: AMBIGUOUS_IDS_MAX,
    });
    if (!first) throw new UnknownOrganizationError(idOrName);
    if (others.length > 0) {
      const ids = [first, ...others].map(({ id }) => id);
      throw new AmbiguousOrganizationError(first.name, ids);
    }
    return first;
  }

  /** Finds an organization by ID. @throws UnknownOrganizationError */
  async get(id: string): Promise<Organization> {
    const found = id.includes('\0') ? null : await this.organizations().findOneBy({ id, deletedAt: IsNull() });
    if (!found) throw new UnknownOrganizationError(id);
    return found;
  }

  /** Takes effect with the next reservation. @throws UnknownPlanError and the errors of `find` */
  async setPlan(idOrName: string, plan: string, actor?: Actor): Promise<Organization> {
    const change = { plan: parsePlan(plan) };
    return this.apply((await this.find(idOrName)).id, change, actor);
  }

  /**
   * Takes effect with the next reservation.
   *
   * @param monthlyLimit null for the limit of the plan
   * @throws InvalidLimitError and the errors of `find`
   */
  async setLimit(idOrName: string, monthlyLimit: number | null, actor?: Actor): Promise<Organization> {
    const change = { monthlyLimit: checkMonthlyLimit(monthlyLimit) };
    return this.apply((await this.find(idOrName)).id, change, actor);
  }

  /**
   * Changes the plan, the limit or both. Takes effect with the next reservation.
   *
   * @throws EmptyChangeError, UnknownPlanError, InvalidLimitError, UnknownOrganizationError
   */
  async change(id: string, { plan, monthlyLimit }: OrganizationChange, actor?: Actor): Promise<Organization> {
    if (plan === undefined && monthlyLimit === undefined) throw new EmptyChangeError();
    const change = {
      ...(plan !== undefined && { plan: parsePlan(plan) }),
      ...(monthlyLimit !== undefined && { monthlyLimit: checkMonthlyLimit(monthlyLimit) }),
    };
    return this.apply(id, change, actor);
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
      const { name, plan, monthlyLimit } = organization;
      const change = { action: 'organization.deleted', organizationId: id, target: id } as const;
      await recordChange(manager, actor, { ...change, before: { name, plan, monthlyLimit }, after: { revokedKeys } });
      return { organization, deletedAt: deleted.deleted_at, revokedKeys };
    };
    return retryConflicts(() => this.database.transaction(deleting));
  }

  private async apply(
    id: string,
    change: Partial<Pick<Organization, 'plan' | 'monthlyLimit'>>,
    actor: Actor | undefined,
  ): Promise<Organization> {
    const applying = async (manager: EntityManager): Promise<void> => {
      const lock = { mode: 'for_no_key_update' } as const;
      const before = id.includes('\0')
        ? null
        : await manager.findOne(Organization, { where: { id, deletedAt: IsNull() }, lock });
      if (!before) throw new UnknownOrganizationError(id);
      await manager.update(Organization, { id }, change);
      for (const [field, action] of AUDITED_FIELDS) {
        const value = change[field];
        if (value === undefined || value === before[field]) continue;
        const values = { before: { [field]: before[field] }, after: { [field]: value } };
        await recordChange(manager, actor, { action, organizationId: id, target: id, ...values });
      }
    };
    await retryConflicts(() => this.database.transaction(applying));
    return this.get(id);
  }

  /** Deleted organizations included. */
  private async findById(id: string): Promise<Organization | null> {
    return id.includes('\0') ? null : this.organizations().findOneBy({ id });
  }

  private organizations() {
    return this.database.getRepository(Organization);
  }
}

const DELETE = `
  UPDATE organizations SET deleted_at = now() WHERE id = $1 AND deleted_at IS NULL RETURNING deleted_at`;

// Excludes expired keys, because `revokedKeys` counts those that were valid.
const REVOKE_ALL = `
  UPDATE api_keys SET revoked_at = now()
    WHERE organization_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;

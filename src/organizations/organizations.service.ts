import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, IsNull } from 'typeorm';
import { withOrganizationSlot } from '../database/organization-limiter.js';
import { retryConflicts } from '../database/retry-conflicts.js';
import { PLANS, type Plan } from '../domain/plan.js';
import { readName } from './name.js';
import {
  AmbiguousOrganizationError,
  EmptyChangeError,
  InvalidLimitError,
  MONTHLY_LIMIT_MAX,
  UnknownCursorError,
  UnknownOrganizationError,
  UnknownPlanError,
} from './organization-errors.js';
import { Organization } from './organization.entity.js';

/** What an organization is made from; `monthlyLimit` null follows the plan. */
export interface NewOrganization {
  name: string;
  plan: string;
  monthlyLimit?: number | null;
}

/** What of an organization can be changed; what is undefined stays as it is. */
export interface OrganizationChange {
  plan?: string | undefined;
  /** Null follows the plan. */
  monthlyLimit?: number | null | undefined;
}

export interface DeletedOrganization {
  organization: Organization;
  deletedAt: Date;
  /** How many keys were good until then. */
  revokedKeys: number;
}

export interface OrganizationsPage {
  organizations: Organization[];
  /** The `after` of the next page; null at the end. */
  next: string | null;
}

/** How many namesakes an ambiguous name lists at most. */
const NAMESAKES_MAX = 5;

/** Makes, finds and changes organizations. */
@Injectable()
export class OrganizationsService {
  constructor(private readonly database: DataSource) {}

  /** @throws InvalidNameError, UnknownPlanError, InvalidLimitError */
  async create({ name, plan, monthlyLimit = null }: NewOrganization): Promise<Organization> {
    const id = `org_${randomBytes(12).toString('hex')}`;
    await this.organizations().insert({
      id,
      name: readName(name),
      plan: readPlan(plan),
      monthlyLimit: readLimit(monthlyLimit),
    });
    return this.find(id);
  }

  /** The oldest first, `count` at most, those made after the organization `after`. @throws UnknownCursorError */
  async list({
    count,
    after = null,
  }: {
    count: number;
    after?: string | null | undefined;
  }): Promise<OrganizationsPage> {
    const query = this.organizations()
      .createQueryBuilder('organization')
      .where('organization.deletedAt IS NULL')
      .orderBy('organization.createdAt')
      .addOrderBy('organization.id')
      .limit(count + 1);
    if (after !== null) {
      if (!(await this.known(after))) throw new UnknownCursorError(after);
      query.andWhere(
        '(organization.createdAt, organization.id) > (SELECT created_at, id FROM organizations WHERE id = :after)',
        { after },
      );
    }
    const found = await query.getMany();
    const organizations = found.slice(0, count);
    return { organizations, next: found.length > count ? (organizations.at(-1)?.id ?? null) : null };
  }

  /** Whether there is none yet. */
  async isEmpty(): Promise<boolean> {
    return !(await this.organizations().existsBy({ deletedAt: IsNull() }));
  }

  /**
   * For what is asked after its end too, such as its usage: a deleted one is found by its id alone.
   *
   * @throws UnknownOrganizationError, AmbiguousOrganizationError when several have the name
   */
  async findIncludingDeleted(idOrName: string): Promise<Organization> {
    const byId = await this.known(idOrName);
    return byId ?? this.find(idOrName);
  }

  /** By its id alone, deleted or not. @throws UnknownOrganizationError */
  async getIncludingDeleted(id: string): Promise<Organization> {
    const found = await this.known(id);
    if (!found) throw new UnknownOrganizationError(id);
    return found;
  }

  /** @throws UnknownOrganizationError, AmbiguousOrganizationError when several have the name */
  async find(idOrName: string): Promise<Organization> {
    // PostgreSQL's texts cannot hold this character, so it refuses even the question.
    if (idOrName.includes('\0')) throw new UnknownOrganizationError(idOrName);
    const byId = await this.organizations().findOneBy({ id: idOrName, deletedAt: IsNull() });
    if (byId) return byId;
    const [first, ...others] = await this.organizations().find({
      where: { name: idOrName.trim(), deletedAt: IsNull() },
      order: { createdAt: 'ASC', id: 'ASC' },
      take: NAMESAKES_MAX,
    });
    if (!first) throw new UnknownOrganizationError(idOrName);
    if (others.length > 0)
      throw new AmbiguousOrganizationError(
        first.name,
        [first, ...others].map(({ id }) => id),
      );
    return first;
  }

  /** By its id alone. @throws UnknownOrganizationError */
  async get(id: string): Promise<Organization> {
    const found = id.includes('\0') ? null : await this.organizations().findOneBy({ id, deletedAt: IsNull() });
    if (!found) throw new UnknownOrganizationError(id);
    return found;
  }

  /** In force for the next reservation. @throws UnknownPlanError and what `find` throws */
  async setPlan(idOrName: string, plan: string): Promise<Organization> {
    const change = { plan: readPlan(plan) };
    return this.apply((await this.find(idOrName)).id, change);
  }

  /** In force for the next reservation; null follows the plan. @throws InvalidLimitError and what `find` throws */
  async setLimit(idOrName: string, monthlyLimit: number | null): Promise<Organization> {
    const change = { monthlyLimit: readLimit(monthlyLimit) };
    return this.apply((await this.find(idOrName)).id, change);
  }

  /**
   * Changes the plan, the limit or both at once, in force for the next reservation.
   *
   * @throws EmptyChangeError, UnknownPlanError, InvalidLimitError, UnknownOrganizationError
   */
  async change(id: string, { plan, monthlyLimit }: OrganizationChange): Promise<Organization> {
    if (plan === undefined && monthlyLimit === undefined) throw new EmptyChangeError();
    const change = {
      ...(plan !== undefined && { plan: readPlan(plan) }),
      ...(monthlyLimit !== undefined && { monthlyLimit: readLimit(monthlyLimit) }),
    };
    return this.apply((await this.get(id)).id, change);
  }

  /**
   * Takes an organization out of use: its keys are refused from the next call on, and no list shows it. Calls that run
   * are settled all the same, and its settled calls are kept.
   *
   * @throws UnknownOrganizationError
   */
  async delete(id: string): Promise<DeletedOrganization> {
    const organization = await this.get(id);
    const deleting = async (manager: EntityManager): Promise<DeletedOrganization> => {
      // First, because whoever issues a key or reserves waits for this row and then sees that it is over.
      const [[deleted]] = await manager.query<[{ deleted_at: Date }[], number]>(DELETE, [id]);
      if (!deleted) throw new UnknownOrganizationError(id);
      const [, revokedKeys] = await manager.query<[unknown[], number]>(REVOKE_ALL, [id]);
      return { organization, deletedAt: deleted.deleted_at, revokedKeys };
    };
    return this.locking(id, () => this.database.transaction(deleting));
  }

  private async apply(id: string, change: Partial<Pick<Organization, 'plan' | 'monthlyLimit'>>): Promise<Organization> {
    await this.locking(id, () => this.organizations().update({ id, deletedAt: IsNull() }, change));
    return this.get(id);
  }

  /** Runs a whole transaction that locks the organization. */
  private locking<T>(id: string, work: () => Promise<T>): Promise<T> {
    return withOrganizationSlot(this.database, id, () => retryConflicts(work));
  }

  /** The one that has or had this id; null when there never was one. */
  private async known(id: string): Promise<Organization | null> {
    return id.includes('\0') ? null : this.organizations().findOneBy({ id });
  }

  private organizations() {
    return this.database.getRepository(Organization);
  }
}

const DELETE = `
  UPDATE organizations SET deleted_at = now() WHERE id = $1 AND deleted_at IS NULL RETURNING deleted_at`;

// What had expired before was not revoked by this.
const REVOKE_ALL = `
  UPDATE api_keys SET revoked_at = now()
    WHERE organization_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;

function readPlan(text: string): Plan {
  const plan = PLANS.find((known) => known === text);
  if (!plan) throw new UnknownPlanError(text);
  return plan;
}

function readLimit(limit: number | null): number | null {
  if (limit !== null && !(Number.isInteger(limit) && limit >= 0 && limit <= MONTHLY_LIMIT_MAX)) {
    throw new InvalidLimitError();
  }
  return limit;
}

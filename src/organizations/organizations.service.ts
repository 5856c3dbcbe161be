import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, IsNull } from 'typeorm';
import { PLANS, type Plan } from '../domain/plan.js';
import { readName } from './name.js';
import {
  AmbiguousOrganizationError,
  InvalidLimitError,
  MONTHLY_LIMIT_MAX,
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

  /** The oldest first, `count` at most, those made after the organization `after`. */
  async list({ count, after = null }: { count: number; after?: string | null }): Promise<OrganizationsPage> {
    const query = this.organizations()
      .createQueryBuilder('organization')
      .where('organization.deletedAt IS NULL')
      .orderBy('organization.createdAt')
      .addOrderBy('organization.id')
      .limit(count + 1);
    if (after !== null) {
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

  /** In force for the next reservation. @throws UnknownPlanError and what `find` throws */
  async setPlan(idOrName: string, plan: string): Promise<Organization> {
    return this.change(idOrName, { plan: readPlan(plan) });
  }

  /** In force for the next reservation; null follows the plan. @throws InvalidLimitError and what `find` throws */
  async setLimit(idOrName: string, monthlyLimit: number | null): Promise<Organization> {
    return this.change(idOrName, { monthlyLimit: readLimit(monthlyLimit) });
  }

  private async change(
    idOrName: string,
    change: Partial<Pick<Organization, 'plan' | 'monthlyLimit'>>,
  ): Promise<Organization> {
    const { id } = await this.find(idOrName);
    await this.organizations().update({ id, deletedAt: IsNull() }, change);
    return this.find(id);
  }

  private organizations() {
    return this.database.getRepository(Organization);
  }
}

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

import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { Actor } from '../domain/caller.js';
import { UnknownCursorError } from './organization-errors.js';
import { toPage, type Page, type PageRequest } from './page.js';

/** What an operator can change. */
export const AUDIT_ACTIONS = [
  'organization.created',
  'organization.plan_changed',
  'organization.limit_changed',
  'organization.deleted',
  'key.issued',
  'key.rotated',
  'key.revoked',
  'job.canceled',
  'usage.pruned',
] as const;
type AuditAction = (typeof AUDIT_ACTIONS)[number];

type Values = Readonly<Record<string, unknown>>;

/** A change, without secrets. */
interface Change {
  action: AuditAction;
  /** Null for a change that concerns all organizations. */
  organizationId: string | null;
  /** The ID of what was changed; null for `usage.pruned`. */
  target: string | null;
  /** What the change replaced; null when there was nothing before. */
  before: Values | null;
  after: Values | null;
}

/** A change as it was recorded. */
export interface AuditEntry extends Change {
  id: string;
  at: Date;
  actor: Actor['kind'];
  requestId: string | null;
}

const INSERT = `
  INSERT INTO audit_entries (actor, action, organization_id, target, before, after, request_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const LIST = `
  SELECT id, at, actor, action, organization_id AS "organizationId", target, before, after, request_id AS "requestId"
    FROM audit_entries
    WHERE ($1::text IS NULL OR organization_id = $1) AND ($2::bigint IS NULL OR id < $2)
    ORDER BY id DESC LIMIT $3`;

/** As many digits as every bigint can have. */
const ENTRY_ID = /^[0-9]{1,18}$/;

/**
 * Records a change.
 *
 * @param manager that of the transaction which makes the change, so that neither is stored without the other
 * @param actor undefined for a change by the service itself, which is not recorded
 */
export async function recordChange(manager: EntityManager, actor: Actor | undefined, change: Change): Promise<void> {
  if (!actor) return;
  const { action, organizationId, target, before, after } = change;
  await manager.query(INSERT, [actor.kind, action, organizationId, target, before, after, actor.requestId]);
}

/** Lists the changes that operators made. */
@Injectable()
export class AuditTrail {
  constructor(private readonly database: DataSource) {}

  /**
   * Lists changes, newest first.
   *
   * @param organizationId null for the changes of all organizations
   * @throws UnknownCursorError
   */
  async list(organizationId: string | null, { count, after = null }: PageRequest): Promise<Page<AuditEntry>> {
    if (after !== null && !ENTRY_ID.test(after)) throw new UnknownCursorError(after);
    return toPage(await this.database.query<AuditEntry[]>(LIST, [organizationId, after, count + 1]), count);
  }
}

import { Injectable, Module } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { z } from 'zod';
import type { Actor } from '../domain/caller.js';
import { textOrNull } from '../domain/schema-fields.js';
import { page, toPage, UnknownCursorError, type Page, type PageRequest } from '../domain/page.js';

export const AUDIT_ACTIONS = [
  'organization.created',
  'organization.plan_changed',
  'organization.limit_changed',
  'organization.external_id_changed',
  'organization.deleted',
  'key.issued',
  'key.rotated',
  'key.revoked',
  'key.unblocked',
  'client.blocked',
  'client.unblocked',
  'job.created',
  'job.changed',
  'job.canceled',
  'job.resumed',
  'job.deleted',
  'subscription.created',
  'subscription.changed',
  'subscription.deleted',
  'feed_link.created',
  'feed_link.deleted',
  'library.deleted',
  'webhook.created',
  'webhook.changed',
  'webhook.rotated',
  'webhook.deleted',
  'usage.pruned',
] as const;

const ACTORS = ['admin', 'cli', 'key', 'client'] as const satisfies readonly Actor['kind'][];

const valuesOrNull = (description: string) => z.record(z.string(), z.unknown()).nullable().describe(description);

/** A change as it was recorded, without secrets. */
export const AuditEntry = z
  .object({
    id: z.string().describe('The ID of the entry. Later entries have higher IDs.'),
    at: z.date().describe('When the change was made.'),
    actor: z
      .enum(ACTORS)
      .describe(
        'Who made it: an operator over HTTP (`admin`) or by a command (`cli`), or a caller with an API `key` or as a `client` of the ' +
          'identity provider.',
      ),
    keyId: textOrNull('The ID of the API key or client of a caller. Null for an operator.'),
    action: z.enum(AUDIT_ACTIONS).describe('What was done.'),
    organizationId: textOrNull('The organization. Null for `usage.pruned` and `client.…`.'),
    target: textOrNull('The ID of what was changed. Null for `usage.pruned`.'),
    before: valuesOrNull('The changed values before. Null when there were none.'),
    after: valuesOrNull('The changed values after. API keys and other secrets are never among them.'),
    requestId: textOrNull('The ID of the request, as the caller may have chosen it. Null for a command.'),
    callId: textOrNull('The ID that the service gave the request; its line in the log has it too. Null for a command.'),
    address: textOrNull('The address that the request came from. Null for a command.'),
    person: z
      .object({
        sub: z.string().describe('The claim `sub` of the token.'),
        email: textOrNull('The claim `email`. Null when the token has none.'),
      })
      .nullable()
      .describe(
        'The operator who made it with a token of the identity provider. Null with the admin token, and for others.',
      ),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

export const AuditPageDto = page
  .extend({ entries: z.array(AuditEntry).describe('The changes, newest first.') })
  .meta({ id: 'AuditPage' });
export type AuditPageDto = z.infer<typeof AuditPageDto>;

/** An example for the OpenAPI document. */
export const AUDIT_ENTRY: AuditEntry = {
  id: '4215',
  at: new Date('2026-11-20T16:21:44Z'),
  actor: 'key',
  keyId: 'key_5b1f6a2c9d3e4f7081a2b3c4',
  action: 'job.canceled',
  organizationId: 'org_0a1b2c3d4e5f6a7b8c9d0e1f',
  target: 'job_2vXk9QmB7sTfLwYzR4nCdE',
  before: { state: 'running' },
  after: { state: 'canceled' },
  requestId: 'nightly-4711',
  callId: '8f14c5e2-6d0b-4a57-9e31-0c2f7be4d813',
  address: '203.0.113.9',
  person: null,
};

type Change = Pick<AuditEntry, 'action' | 'organizationId' | 'target' | 'before' | 'after'>;

const RECORD = 'SELECT audit_record($1, $2, $3, $4, $5, $6)';

const LIST = `
  SELECT id, at, actor, key_id AS "keyId", action, organization_id AS "organizationId", target, before, after, request_id AS "requestId",
         call_id AS "callId", address, person
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
  const { action, organizationId, target, before, after } = change;
  await manager.query(RECORD, [actor ?? null, action, organizationId, target, before, after]);
}

/** Lists the changes that operators and callers made. */
@Injectable()
export class AuditTrail {
  constructor(private readonly database: DataSource) {}

  /**
   * Lists changes, newest first.
   *
   * @param organizationId null for the changes of all organizations
   * @throws UnknownCursorError
   */
  async list(organizationId: string | null, { limit, after = null }: PageRequest): Promise<Page<AuditEntry>> {
    if (after !== null && !ENTRY_ID.test(after)) throw new UnknownCursorError(after);
    return toPage(await this.database.query<AuditEntry[]>(LIST, [organizationId, after, limit + 1]), limit);
  }
}

@Module({ providers: [AuditTrail], exports: [AuditTrail] })
export class AuditModule {}

import { Injectable } from '@nestjs/common';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { DataSource, type EntityManager } from 'typeorm';
import type { Actor, Person } from '../domain/caller.js';
import { dateTime, objectOrNull, PageDto, textOrNull } from '../http/routes/response-docs.js';
import { toPage, UnknownCursorError, type Page, type PageRequest } from '../domain/page.js';

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
  'job.canceled',
  'job.resumed',
  'job.deleted',
  'subscription.created',
  'subscription.changed',
  'subscription.deleted',
  'webhook.created',
  'webhook.rotated',
  'webhook.deleted',
  'usage.pruned',
] as const;

const ACTORS = ['admin', 'cli', 'key', 'client'] as const satisfies readonly Actor['kind'][];

type Values = Readonly<Record<string, unknown>>;

const valuesOrNull = (description: string) =>
  ({ type: 'object', additionalProperties: true, nullable: true, description }) as const;

const PERSON_PROPERTIES = {
  sub: { type: 'string', description: 'The claim `sub` of the token.' },
  email: textOrNull('The claim `email`. Null when the token has none.'),
} as const satisfies Record<keyof Person, object>;

/** A change as it was recorded, without secrets. */
@ApiSchema({ name: 'AuditEntry' })
export class AuditEntry {
  @ApiProperty({ description: 'The ID of the entry. Later entries have higher IDs.' })
  id: string;

  @ApiProperty(dateTime('When the change was made.'))
  at: Date;

  @ApiProperty({
    enum: ACTORS,
    description:
      'Who made it: an operator over HTTP (`admin`) or by a command (`cli`), or a caller with an API `key` or as a `client` of the ' +
      'identity provider.',
  })
  actor: Actor['kind'];

  @ApiProperty(textOrNull('The ID of the API key or client of a caller. Null for an operator.'))
  keyId: string | null;

  @ApiProperty({ enum: AUDIT_ACTIONS, description: 'What was done.' })
  action: (typeof AUDIT_ACTIONS)[number];

  @ApiProperty(textOrNull('The organization. Null for `usage.pruned` and `client.…`.'))
  organizationId: string | null;

  @ApiProperty(textOrNull('The ID of what was changed. Null for `usage.pruned`.'))
  target: string | null;

  @ApiProperty(valuesOrNull('The changed values before. Null when there were none.'))
  before: Values | null;

  @ApiProperty(valuesOrNull('The changed values after. API keys and other secrets are never among them.'))
  after: Values | null;

  @ApiProperty(textOrNull('The ID of the request, as the caller may have chosen it. Null for a command.'))
  requestId: string | null;

  @ApiProperty(
    textOrNull('The ID that the service gave the request; its line in the log has it too. Null for a command.'),
  )
  callId: string | null;

  @ApiProperty(textOrNull('The address that the request came from. Null for a command.'))
  address: string | null;

  @ApiProperty(
    objectOrNull(
      'The operator who made it with a token of the identity provider. Null with the admin token, and for others.',
      PERSON_PROPERTIES,
    ),
  )
  person: Person | null;
}

@ApiSchema({ name: 'AuditPage' })
export class AuditPageDto extends PageDto {
  @ApiProperty({ type: [AuditEntry], description: 'The changes, newest first.' })
  entries: AuditEntry[];
}

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

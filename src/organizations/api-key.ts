import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Column, type DataSource, Entity, PrimaryColumn } from 'typeorm';
import { type Caller, SCOPES, type Scope } from '../domain/caller.js';
import { KEY_PREFIX, base62, bytesToBase62 } from '../domain/api-key-text.js';
import type { Plan } from '../domain/plan.js';
import { dateTime, dateTimeOrNull, textOrNull } from '../domain/schema-fields.js';
import { ApiField } from '../http/routes/response-docs.js';

const RANDOM_BYTES = 32;
/** The length of 256 bits in base 62. */
const RANDOM_LENGTH = 43;
/** The length of 32 bits in base 62. */
const CHECKSUM_LENGTH = 6;
const KEY_KINDS = ['key', 'oidc'] as const;

const SHAPE = new RegExp(`^((\\w{3}_)[0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`);

/** An API key, or a client of the identity provider, as operators see it. The hash by which it is found is in the table only. */
@Entity('api_keys')
@ApiSchema({ name: 'Key' })
export class ApiKey {
  @ApiProperty({ description: 'The ID of the key, for rotating and revoking it.' })
  @PrimaryColumn('text')
  id: string;

  @ApiProperty({ description: 'The ID of the organization that the key belongs to.' })
  @Column({ type: 'text', name: 'organization_id' })
  organizationId: string;

  @ApiProperty({ description: 'A label for the purpose of the key.' })
  @Column('text')
  name: string;

  @ApiProperty({
    enum: KEY_KINDS,
    description: '`key`: an API key. `oidc`: a client of the identity provider, listed from its first call on.',
  })
  @Column('text')
  kind: (typeof KEY_KINDS)[number];

  @ApiField(textOrNull('Of `oidc`: the client (`azp` or `client_id`) that its tokens name.'))
  @Column({ type: 'text', nullable: true })
  client: string | null;

  @ApiField(textOrNull('The first characters of the key, which identify it in lists. Null for `oidc`.'))
  @Column({ type: 'text', nullable: true })
  prefix: string | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description:
      'Transcripts per month that the key may use of the quota of its organization, together with the keys that it replaced. Null for no limit of its own.',
  })
  @Column({ type: 'integer', name: 'monthly_limit', nullable: true })
  monthlyLimit: number | null;

  @ApiProperty({
    enum: SCOPES,
    isArray: true,
    description:
      'What the key may do: `read`, and `write`, which changes jobs, subscriptions, webhooks, feed links and the library. Of `oidc` the tokens decide, with `OIDC_SCOPES`.',
  })
  @Column({ type: 'text', array: true })
  scopes: Scope[];

  @ApiField(dateTime('When the key was issued.'))
  @Column({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @ApiField(dateTimeOrNull('When the key expires. Null when it does not.'))
  @Column({ type: 'timestamptz', name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  @ApiField(dateTimeOrNull('When the key was revoked or the client blocked. Null when it was not.'))
  @Column({ type: 'timestamptz', name: 'revoked_at', nullable: true })
  revokedAt: Date | null;

  @ApiField(dateTimeOrNull('When the key was last used, accurate to one minute. Null when it was not used yet.'))
  @Column({ type: 'timestamptz', name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;

  @ApiField(textOrNull('The ID of the key that replaces it. Null when the key was not rotated.'))
  @Column({ type: 'text', name: 'replaced_by', nullable: true })
  replacedBy: string | null;
}

/** A new key with its plaintext, which is shown once and never stored. */
@ApiSchema({ name: 'IssuedKey' })
export class IssuedKey extends ApiKey {
  @ApiProperty({ description: 'The key itself. It is returned only this once and cannot be retrieved later.' })
  key: string;
}

@ApiSchema({ name: 'RotatedKey' })
export class RotatedKey extends IssuedKey {
  @ApiProperty({ description: 'The old key, with the end of its grace period as `expiresAt`.' })
  replaced: ApiKey;
}

@ApiSchema({ name: 'RevokedKey' })
export class RevokedKey extends ApiKey {
  /** Newest first. */
  @ApiProperty({
    type: [ApiKey],
    description: 'Keys that this key replaced and whose grace period has not ended. Revoke each of them separately.',
  })
  stillValid: ApiKey[];
}

/**
 * Generates an API key: `ctk_`, 256 random bits, and a checksum that detects a mistyped key without a query.
 *
 * @param prefix of another secret of the same form
 */
export function generateKey(prefix = KEY_PREFIX): string {
  const body = prefix + bytesToBase62(randomBytes(RANDOM_BYTES));
  return body + checksum(body);
}

/** Whether a text has the format and the checksum of a key. */
export function isWellFormedKey(text: string, prefix = KEY_PREFIX): boolean {
  const [, body, begin, check] = SHAPE.exec(text) ?? [];
  return body !== undefined && begin === prefix && checksum(body) === check;
}

/** The SHA-256 under which a key is stored. 256 random bits need no slow hash. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

/** The row of a key or token client with its organization. */
export interface FoundCaller {
  key_id: string;
  scopes: Scope[];
  id: string;
  name: string;
  plan: Plan;
  keeps: boolean;
  /** Whether the last use that is stored is older than a minute. */
  stale: boolean;
}

// Compares the minute here as well, because another call may have written it meanwhile. A locked key is skipped: the
// column is accurate to one minute at best, and a write that waited would keep a connection from the calls.
const RECORD_USE = `
  UPDATE api_keys SET last_used_at = clock_now() WHERE id IN (
    SELECT id FROM api_keys WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < clock_now() - interval '1 minute')
      FOR NO KEY UPDATE SKIP LOCKED)`;

/** Accepts a caller whose row was found, and records the use. */
export function acceptCaller(database: DataSource, found: FoundCaller, kind: Caller['kind']): Caller {
  const { key_id: keyId, scopes, stale, id, name, plan, keeps } = found;
  // Not waited for: a failure, such as of a read-only server, affects no call.
  if (stale) database.query(RECORD_USE, [keyId]).catch(() => undefined);
  return { keyId, kind, scopes, organization: { id, name, plan, keeps } };
}

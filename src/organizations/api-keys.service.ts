import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, Raw } from 'typeorm';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { displayPrefix } from '../domain/api-key-text.js';
import { SCOPES, type Actor, type Caller, type Scope } from '../domain/caller.js';
import type { KeyRefusal } from '../domain/errors.js';
import {
  acceptCaller,
  ApiKey,
  type FoundCaller,
  generateKey,
  hashKey,
  isWellFormedKey,
  type IssuedKey,
  type RevokedKey,
  type RotatedKey,
} from './api-key.js';
import { recordChange } from '../audit/audit-trail.js';
import {
  InactiveKeyError,
  RevokedKeyError,
  TokenClientError,
  UnknownKeyError,
  UnknownOrganizationError,
} from './organization-errors.js';
import { parseDisplayName } from './organizations.service.js';
import type { Page, PageRequest } from '../domain/page.js';
import { readPage } from '../database/read-page.js';

interface NewKey {
  organizationId: string;
  name?: string | undefined;
  /** The key does not expire when undefined. */
  expiresInDays?: number | undefined;
  /** Transcripts per month that the key may use of the organization's quota; all of it when null. */
  monthlyLimit?: number | null | undefined;
  /** All of them when undefined. */
  scopes?: readonly Scope[] | undefined;
}

const NAME_DEFAULT = 'default';
const ROW_LOCK = { mode: 'for_no_key_update' } as const;
const SECONDS_PER_DAY = 86_400;

/**
 * Issues, lists, rotates, revokes and authenticates API keys; lists, blocks and unblocks the clients with tokens beside them. A change is recorded in the audit trail for the `actor` who
 * makes it.
 */
@Injectable()
export class ApiKeysService {
  constructor(private readonly database: DataSource) {}

  /**
   * Identifies the caller by an API key. The database is queried on every call, so that a revoked key is refused at once;
   * a malformed key is refused without a query.
   *
   * @returns why the key is not accepted, otherwise
   */
  async authenticate(key: string): Promise<Caller | KeyRefusal> {
    if (!isWellFormedKey(key)) return 'malformed';
    const [found] = await queryWithDeadline<FoundKey[]>(this.database, AUTHENTICATE, [hashKey(key)]);
    if (!found) return 'unknown';
    return found.refusal ?? acceptCaller(this.database, found, 'key');
  }

  /** @throws InvalidRequestError for an invalid name, UnknownOrganizationError */
  async issue(
    { organizationId, name = NAME_DEFAULT, expiresInDays, monthlyLimit = null, scopes: wanted = SCOPES }: NewKey,
    actor?: Actor,
  ): Promise<IssuedKey> {
    const lifetimeSeconds = expiresInDays === undefined ? null : expiresInDays * SECONDS_PER_DAY;
    const keyName = parseDisplayName(name);
    const scopes = SCOPES.filter((scope) => wanted.includes(scope));
    return this.database.transaction(async (manager) => {
      const issued = await insertKey(manager, organizationId, {
        name: keyName,
        lifetime_seconds: lifetimeSeconds,
        monthly_limit: monthlyLimit,
        quota_key_id: null,
        scopes,
      });
      const { id: target, expiresAt } = issued;
      const after = { name: keyName, expiresAt, monthlyLimit, scopes };
      await recordChange(manager, actor, { action: 'key.issued', organizationId, target, before: null, after });
      return issued;
    });
  }

  /**
   * Lists the keys and token clients of an organization, including revoked and expired ones, oldest first; clients that were not
   * used for 90 days only if they are blocked.
   *
   * @throws UnknownCursorError
   */
  async list(organizationId: string, page: PageRequest): Promise<Page<ApiKey>> {
    return readPage(this.database.getRepository(ApiKey), { organizationId, kind: Raw(isListed) }, page);
  }

  /**
   * Issues a key that replaces another, with the same name, lifetime and scopes. The old key stays valid for `graceHours`; 0
   * revokes it immediately. A monthly limit stays one limit: both keys count against it.
   *
   * @throws UnknownKeyError, TokenClientError, InactiveKeyError for a revoked, expired or already replaced key
   */
  async rotate(keyId: string, graceHours: number, actor?: Actor): Promise<RotatedKey> {
    const found = await findKey(this.database.manager, keyId);
    const { organizationId, kind } = found;
    if (kind === 'oidc') throw new TokenClientError(keyId);
    const rotating = async (manager: EntityManager): Promise<RotatedKey> => {
      // Locks in the same order as the deletion of an organization: the organization, then its keys.
      await manager.query('SELECT 1 FROM organizations WHERE id = $1 FOR SHARE', [organizationId]);
      const [old] = await manager.query<ActiveKey[]>(LOCK_ACTIVE, [keyId]);
      if (!old) throw new InactiveKeyError(keyId);
      const issued = await insertKey(manager, organizationId, old);
      await manager.query(RETIRE, [keyId, graceHours, issued.id]);
      const replaced = await findKey(manager, keyId);
      const { expiresAt, revokedAt, replacedBy } = replaced;
      const before = { expiresAt: found.expiresAt, revokedAt: null, replacedBy: null };
      const after = { expiresAt, revokedAt, replacedBy };
      await recordChange(manager, actor, { action: 'key.rotated', organizationId, target: keyId, before, after });
      return { ...issued, replaced };
    };
    return this.database.transaction(rotating);
  }

  /**
   * Revokes a key or blocks a token client, which is refused from the next call. Revoking it again changes nothing. The keys that it replaced are
   * not revoked; the result lists those that are still valid.
   *
   * @throws UnknownKeyError
   */
  async revoke(keyId: string, actor?: Actor): Promise<RevokedKey> {
    const { manager } = this.database;
    const { organizationId } = await findKey(manager, keyId);
    await this.database.transaction(async (transaction) => {
      const [[revoked]] = await transaction.query<[{ revoked_at: Date }[], number]>(REVOKE, [keyId]);
      if (!revoked) return;
      const values = { before: { revokedAt: null }, after: { revokedAt: revoked.revoked_at } };
      await recordChange(transaction, actor, { action: 'key.revoked', organizationId, target: keyId, ...values });
    });
    const predecessors = await manager.query<{ id: string }[]>(VALID_PREDECESSORS, [keyId, organizationId]);
    const stillValid = await Promise.all(predecessors.map(({ id }) => findKey(manager, id)));
    return { ...(await findKey(manager, keyId)), stillValid };
  }

  /**
   * Lets a token client call again that was blocked. One that is not blocked does not change.
   *
   * @throws UnknownKeyError, RevokedKeyError for an API key
   */
  async unblock(keyId: string, actor?: Actor): Promise<ApiKey> {
    const { organizationId, kind } = await findKey(this.database.manager, keyId);
    if (kind === 'key') throw new RevokedKeyError(keyId);
    return this.database.transaction(async (manager) => {
      const { revokedAt } = await manager.findOneOrFail(ApiKey, { where: { id: keyId }, lock: ROW_LOCK });
      if (revokedAt === null) return findKey(manager, keyId);
      await manager.update(ApiKey, { id: keyId }, { revokedAt: null });
      const values = { before: { revokedAt }, after: { revokedAt: null } };
      await recordChange(manager, actor, { action: 'key.unblocked', organizationId, target: keyId, ...values });
      return findKey(manager, keyId);
    });
  }
}

interface FoundKey extends FoundCaller {
  refusal: KeyRefusal | null;
}

const isListed = (kind: string): string => `
  (${kind} = 'key' OR item.revokedAt IS NOT NULL OR coalesce(item.lastUsedAt, item.createdAt) > clock_now() - interval '90 days')`;

export const AUTHENTICATE = `
  SELECT key.id AS key_id, key.scopes, organization.id, organization.name, organization.plan, organization.keeps,
         CASE WHEN key.revoked_at IS NOT NULL OR organization.deleted_at IS NOT NULL THEN 'revoked'
              WHEN key.expires_at <= clock_now() THEN 'expired' END AS refusal,
         key.last_used_at IS NULL OR key.last_used_at < clock_now() - interval '1 minute' AS stale
    FROM api_keys key JOIN organizations organization ON organization.id = key.organization_id
    WHERE key.hash = $1`;

interface ActiveKey {
  name: string;
  lifetime_seconds: number | null;
  monthly_limit: number | null;
  /** Which key's count the limit applies to; null for its own, and without a limit. */
  quota_key_id: string | null;
  scopes: readonly Scope[];
}

const LOCK_ACTIVE = `
  SELECT name, extract(epoch FROM expires_at - created_at)::double precision AS lifetime_seconds, monthly_limit, quota_key_id,
         scopes
    FROM api_keys
    WHERE id = $1 AND revoked_at IS NULL AND replaced_by IS NULL AND (expires_at IS NULL OR expires_at > clock_now())
    FOR NO KEY UPDATE`;

/** Follows any number of rotations. A key is replaced at most once, so there are no cycles. */
const VALID_PREDECESSORS = `
  WITH RECURSIVE predecessors AS (
    SELECT $1::text AS id, 0 AS distance
    UNION ALL
    SELECT key.id, predecessors.distance + 1
      FROM api_keys key JOIN predecessors ON key.replaced_by = predecessors.id WHERE key.organization_id = $2
  )
  SELECT id FROM predecessors JOIN api_keys USING (id)
    WHERE id <> $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_now()) ORDER BY distance`;

const REVOKE = `
  UPDATE api_keys SET revoked_at = clock_now() WHERE id = $1 AND revoked_at IS NULL RETURNING revoked_at`;

const RETIRE = `
  UPDATE api_keys
    SET replaced_by = $3,
        revoked_at = CASE WHEN $2 = 0 THEN clock_now() END,
        expires_at = CASE WHEN $2 = 0 THEN expires_at
          ELSE least(expires_at, clock_now() + make_interval(hours => $2)) END
    WHERE id = $1`;

const INSERT = `
  INSERT INTO api_keys (id, organization_id, name, prefix, hash, created_at, expires_at, monthly_limit, quota_key_id, scopes)
    SELECT $1, organization.id, $3, $4, $5, now, now + make_interval(secs => $6), $7, $8, $9
      FROM organizations organization, clock_now() AS now
      WHERE organization.id = $2 AND organization.deleted_at IS NULL FOR SHARE OF organization
    RETURNING id`;

async function insertKey(
  manager: EntityManager,
  organizationId: string,
  { name, lifetime_seconds: lifetimeSeconds, monthly_limit: limit, quota_key_id: quotaKeyId, scopes }: ActiveKey,
): Promise<IssuedKey> {
  const key = generateKey();
  const id = `key_${randomBytes(12).toString('hex')}`;
  const countedAs = limit === null ? null : (quotaKeyId ?? id);
  const stored = [displayPrefix(key), hashKey(key), lifetimeSeconds, limit, countedAs, scopes];
  const values = [id, organizationId, name, ...stored];
  const inserted = await manager.query<unknown[]>(INSERT, values);
  if (inserted.length === 0) throw new UnknownOrganizationError(organizationId);
  return { ...(await findKey(manager, id)), key };
}

async function findKey(manager: EntityManager, id: string): Promise<ApiKey> {
  const found = id.includes('\0') ? null : await manager.findOneBy(ApiKey, { id });
  if (!found) throw new UnknownKeyError(id);
  return found;
}

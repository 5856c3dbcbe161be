import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { withOrganizationSlot } from '../database/organization-limiter.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { retryConflicts } from '../database/retry-conflicts.js';
import type { Plan } from '../domain/plan.js';
import { ApiKeyUse } from './api-key-use.js';
import { ApiKey } from './api-key.entity.js';
import { displayPrefix, generateKey, hashKey, isWellFormedKey } from './api-key.js';
import type { Caller } from './caller.js';
import { DAYS_MAX, GRACE_HOURS_MAX } from './key-lifetime.js';
import { KeyLookups } from './key-lookups.js';
import { readName } from './name.js';
import {
  InactiveKeyError,
  InvalidLifetimeError,
  UnknownCursorError,
  UnknownKeyError,
  UnknownOrganizationError,
} from './organization-errors.js';

/** A key at the only moment when its plaintext exists. */
export interface IssuedKey {
  /** The plaintext, which is shown once and stored nowhere. */
  key: string;
  apiKey: ApiKey;
}

/** A revoked key, and those of its predecessors that rotations left valid for their grace period. */
export interface RevokedKey {
  revoked: ApiKey;
  /** The newest first. */
  stillValid: ApiKey[];
}

/** A new key and the one in whose place it was issued. */
export type RotatedKey = IssuedKey & { replaced: ApiKey };

export interface NewKey {
  organizationId: string;
  name?: string | undefined;
  /** Undefined: it never expires. */
  expiresInDays?: number | undefined;
}

export interface KeysPage {
  keys: ApiKey[];
  /** The `after` of the next page; null at the end. */
  next: string | null;
}

const NAME_DEFAULT = 'default';
const SECONDS_PER_DAY = 86_400;

/** Issues, lists, rotates and revokes API keys, and tells who calls by one. */
@Injectable()
export class ApiKeysService {
  private readonly lookups = new KeyLookups((hashes) => this.findValid(hashes));

  constructor(
    private readonly database: DataSource,
    private readonly use: ApiKeyUse,
  ) {}

  /**
   * Tells whom a key stands for; undefined for a key that is malformed (no query), unknown, revoked or expired. The
   * database is asked on every call, so a revoked key is refused from the next call on.
   *
   * @param options.fromSuspect whether it came from an address that keeps failing to authenticate: the keys of those are
   * looked up together, at a bounded rate
   */
  async authenticate(key: string, { fromSuspect = false } = {}): Promise<Caller | undefined> {
    if (!isWellFormedKey(key)) return undefined;
    const found = await this.lookups.find(hashKey(key), fromSuspect);
    if (!found) return undefined;
    if (found.stale) this.use.note(found.key_id);
    return { keyId: found.key_id, organization: { id: found.id, name: found.name, plan: found.plan } };
  }

  /** @throws InvalidNameError, InvalidLifetimeError, UnknownOrganizationError */
  async issue({ organizationId, name = NAME_DEFAULT, expiresInDays }: NewKey): Promise<IssuedKey> {
    if (expiresInDays !== undefined && !isWholeNumber(expiresInDays, 1, DAYS_MAX)) {
      throw new InvalidLifetimeError('expiresInDays', `A key lives for 1 to ${DAYS_MAX} whole days.`);
    }
    const lifetimeSeconds = expiresInDays === undefined ? null : expiresInDays * SECONDS_PER_DAY;
    const keyName = readName(name);
    return withOrganizationSlot(this.database, organizationId, () =>
      insertKey(this.database.manager, organizationId, keyName, lifetimeSeconds),
    );
  }

  /**
   * The keys of an organization, revoked and expired ones included, the oldest first, `count` at most, those made after
   * the key `after`.
   *
   * @throws UnknownCursorError
   */
  async list(
    organizationId: string,
    { count, after = null }: { count: number; after?: string | null | undefined },
  ): Promise<KeysPage> {
    const repository = this.database.getRepository(ApiKey);
    const query = repository
      .createQueryBuilder('key')
      .where('key.organizationId = :organizationId', { organizationId })
      .orderBy('key.createdAt')
      .addOrderBy('key.id')
      .limit(count + 1);
    if (after !== null) {
      if (after.includes('\0') || !(await repository.existsBy({ id: after, organizationId }))) {
        throw new UnknownCursorError(after);
      }
      query.andWhere('(key.createdAt, key.id) > (SELECT created_at, id FROM api_keys WHERE id = :after)', { after });
    }
    const found = await query.getMany();
    const keys = found.slice(0, count);
    return { keys, next: found.length > count ? (keys.at(-1)?.id ?? null) : null };
  }

  /**
   * Issues a key in place of another, with its name and lifetime; the old one is refused after `graceHours`, and at once
   * when they are 0.
   *
   * @throws UnknownKeyError, InactiveKeyError for a revoked, expired or already rotated key, InvalidLifetimeError
   */
  async rotate(keyId: string, graceHours: number): Promise<RotatedKey> {
    if (!isWholeNumber(graceHours, 0, GRACE_HOURS_MAX)) {
      throw new InvalidLifetimeError('graceHours', `The grace period is 0 to ${GRACE_HOURS_MAX} whole hours.`);
    }
    const { organizationId } = await findKey(this.database.manager, keyId);
    const rotating = async (manager: EntityManager): Promise<RotatedKey> => {
      // In the order in which deleting an organization locks: the organization, then its keys.
      await manager.query('SELECT 1 FROM organizations WHERE id = $1 FOR SHARE', [organizationId]);
      const [old] = await manager.query<ActiveKey[]>(LOCK_ACTIVE, [keyId]);
      if (!old) throw new InactiveKeyError(keyId);
      const issued = await insertKey(manager, organizationId, old.name, old.lifetime_seconds);
      await manager.query(RETIRE, [keyId, graceHours, issued.apiKey.id]);
      return { ...issued, replaced: await findKey(manager, keyId) };
    };
    return withOrganizationSlot(this.database, organizationId, () =>
      retryConflicts(() => this.database.transaction(rotating)),
    );
  }

  /**
   * Refused from the next call on. Revoking twice keeps the first time. The keys in whose place it was issued are not
   * revoked with it, and are named while they are valid.
   *
   * @throws UnknownKeyError
   */
  async revoke(keyId: string): Promise<RevokedKey> {
    const { manager } = this.database;
    const { organizationId } = await findKey(manager, keyId);
    await manager.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL', [keyId]);
    const predecessors = await manager.query<{ id: string }[]>(VALID_PREDECESSORS, [keyId, organizationId]);
    const stillValid = await Promise.all(predecessors.map(({ id }) => findKey(manager, id)));
    return { revoked: await findKey(manager, keyId), stillValid };
  }

  private async findValid(hashes: readonly Buffer[]): Promise<ReadonlyMap<string, FoundKey>> {
    const rows = await queryWithDeadline<FoundKey[]>(this.database, AUTHENTICATE, [hashes]);
    return new Map(rows.map((row) => [row.hash.toString('hex'), row]));
  }
}

interface FoundKey {
  hash: Buffer;
  key_id: string;
  id: string;
  name: string;
  plan: Plan;
  stale: boolean;
}

const AUTHENTICATE = `
  SELECT key.hash, key.id AS key_id, organization.id, organization.name, organization.plan,
         key.last_used_at IS NULL OR key.last_used_at < now() - interval '1 minute' AS stale
    FROM api_keys key JOIN organizations organization ON organization.id = key.organization_id
    WHERE key.hash = ANY ($1::bytea[]) AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > now())
      AND organization.deleted_at IS NULL`;

interface ActiveKey {
  name: string;
  lifetime_seconds: number | null;
}

const LOCK_ACTIVE = `
  SELECT name, extract(epoch FROM expires_at - created_at)::double precision AS lifetime_seconds
    FROM api_keys WHERE id = $1 AND revoked_at IS NULL AND replaced_by IS NULL AND (expires_at IS NULL OR expires_at > now())
    FOR NO KEY UPDATE`;

/** Through any number of rotations; a key is replaced once, so that there is no circle. */
const VALID_PREDECESSORS = `
  WITH RECURSIVE predecessors AS (
    SELECT $1::text AS id, 0 AS distance
    UNION ALL
    SELECT key.id, predecessors.distance + 1
      FROM api_keys key JOIN predecessors ON key.replaced_by = predecessors.id WHERE key.organization_id = $2
  )
  SELECT id FROM predecessors JOIN api_keys USING (id)
    WHERE id <> $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) ORDER BY distance`;

const RETIRE = `
  UPDATE api_keys
    SET replaced_by = $3,
        revoked_at = CASE WHEN $2 = 0 THEN now() END,
        expires_at = CASE WHEN $2 = 0 THEN expires_at ELSE least(expires_at, now() + make_interval(hours => $2)) END
    WHERE id = $1`;

const INSERT = `
  INSERT INTO api_keys (id, organization_id, name, prefix, hash, created_at, expires_at)
    SELECT $1, organization.id, $3, $4, $5, now(), now() + make_interval(secs => $6)
      FROM organizations organization WHERE organization.id = $2 AND organization.deleted_at IS NULL FOR SHARE
    RETURNING id`;

async function insertKey(
  manager: EntityManager,
  organizationId: string,
  name: string,
  lifetimeSeconds: number | null,
): Promise<IssuedKey> {
  const key = generateKey();
  const id = `key_${randomBytes(12).toString('hex')}`;
  const values = [id, organizationId, name, displayPrefix(key), hashKey(key), lifetimeSeconds];
  const inserted = await manager.query<unknown[]>(INSERT, values);
  if (inserted.length === 0) throw new UnknownOrganizationError(organizationId);
  return { key, apiKey: await findKey(manager, id) };
}

async function findKey(manager: EntityManager, id: string): Promise<ApiKey> {
  const found = id.includes('\0') ? null : await manager.findOneBy(ApiKey, { id });
  if (!found) throw new UnknownKeyError(id);
  return found;
}

function isWholeNumber(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

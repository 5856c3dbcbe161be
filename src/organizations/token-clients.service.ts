import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Caller } from '../domain/caller.js';
import type { Plan } from '../domain/plan.js';
import { RECORD_USE } from './api-keys.service.js';
import { NAME_LENGTH_MAX } from './limits.js';
import { RecentlyValid } from './recently-valid.js';

/** Of an organization: a provider can register clients for anybody. */
const CLIENTS_MAX = 1_000;

/**
 * Finds the callers whose tokens an identity provider issued. Each client of an organization has a row beside the API keys, so
 * that usage, limits and the audit trail know it as they know a key.
 */
@Injectable()
export class TokenClientsService {
  private readonly recentlyAccepted = new RecentlyValid();

  constructor(private readonly database: DataSource) {}

  /**
   * Finds a client and its organization with one query, on every call, so that a blocked client is refused at once. The first
   * call of a client adds its row.
   *
   * @param externalId of the organization
   */
  async authenticate(externalId: string, client: string): Promise<Caller | 'not_linked' | 'blocked' | 'too_many'> {
    let found = await this.find(externalId, client);
    if (found?.key_id === null) found = await this.add(found.id, externalId, client);
    const keyId = found?.key_id ?? null;
    this.recentlyAccepted.record(nameOf(externalId, client), keyId !== null && found?.blocked === false);
    if (found?.blocked) return 'blocked';
    if (!found) return 'not_linked';
    if (keyId === null) return 'too_many';
    // Not waited for: a failure, such as of a read-only server, affects no call.
    if (found.stale) this.database.query(RECORD_USE, [keyId]).catch(() => undefined);
    return { keyId, organization: { id: found.id, name: found.name, plan: found.plan } };
  }

  /** Whether a client was accepted within the last ten minutes, as far as this process knows. It may be blocked since. */
  wasRecentlyAccepted(externalId: string, client: string): boolean {
    return this.recentlyAccepted.has(nameOf(externalId, client));
  }

  /** Whether the operator has blocked a client in any organization. */
  async isBlocked(client: string): Promise<boolean> {
    return (await queryWithDeadline<unknown[]>(this.database, BLOCKED_CLIENT, [client])).length > 0;
  }

  private async find(externalId: string, client: string): Promise<FoundClient | undefined> {
    const [found] = await queryWithDeadline<FoundClient[]>(this.database, AUTHENTICATE_CLIENT, [externalId, client]);
    return found;
  }

  private async add(organizationId: string, externalId: string, client: string): Promise<FoundClient | undefined> {
    const id = `key_${randomBytes(12).toString('hex')}`;
    const name = Array.from(client).slice(0, NAME_LENGTH_MAX).join('');
    await queryWithDeadline(this.database, ADD_CLIENT, [id, organizationId, client, name, CLIENTS_MAX], organizationId);
    return this.find(externalId, client);
  }
}

interface FoundClient {
  /** Null before the first call of the client. */
  key_id: string | null;
  id: string;
  name: string;
  plan: Plan;
  blocked: boolean;
  /** Whether the last use that is stored is older than a minute. */
  stale: boolean;
}

export const AUTHENTICATE_CLIENT = `
  SELECT key.id AS key_id, organization.id, organization.name, organization.plan, key.revoked_at IS NOT NULL AS blocked,
         key.last_used_at IS NULL OR key.last_used_at < now() - interval '1 minute' AS stale
    FROM organizations organization LEFT JOIN api_keys key ON key.organization_id = organization.id AND key.client = $2
    WHERE organization.external_id = $1 AND organization.deleted_at IS NULL`;

const ADD_CLIENT = 'SELECT token_client_add($1, $2, $3, $4, $5)';

// The deletion of an organization revokes its rows; nobody has blocked those.
const BLOCKED_CLIENT = `
  SELECT 1 FROM api_keys key JOIN organizations organization ON organization.id = key.organization_id
    WHERE key.client = $1 AND key.revoked_at IS NOT NULL AND organization.deleted_at IS NULL LIMIT 1`;

/** Neither part has a control character. */
const nameOf = (externalId: string, client: string): string => `${externalId}\n${client}`;

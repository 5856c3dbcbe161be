import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Actor, Caller } from '../domain/caller.js';
import { recordChange } from '../audit/audit-trail.js';
import { acceptCaller, type FoundCaller } from './api-key.js';
import { EXTERNAL_ID_LENGTH_MAX, NAME_LENGTH_MAX } from './organization.entity.js';
import { parseDisplayName } from './organizations.service.js';

/** Of an organization, counting those that have called in the last 30 days: a provider can register clients for anybody. */
const CLIENTS_MAX = 1_000;

/** A client of the identity provider under `/admin`. */
export interface AdminClient {
  client: string;
  blocked: boolean;
}

/**
 * Finds the callers whose tokens an identity provider issued. Each client of an organization has a row beside the API keys, so
 * that usage, limits and the audit trail know it as they know a key.
 */
@Injectable()
export class TokenClientsService {
  constructor(private readonly database: DataSource) {}

  /**
   * Finds a client and its organization with one query, on every call, so that a blocked client is refused at once. The first
   * call of a client adds its row.
   *
   * @param externalId of the organization
   */
  async authenticate(externalId: string, client: string): Promise<Caller | 'not_linked' | 'blocked' | 'too_many'> {
    let found = await this.find(externalId, client);
    if (found?.key_id === null) {
      await this.add(found.id, client);
      found = await this.find(externalId, client);
    }
    if (!found) return 'not_linked';
    if (found.key_id === null) return 'too_many';
    return found.blocked ? 'blocked' : acceptCaller(this.database, found, 'client');
  }

  /** Whether a client is blocked under `/admin`. */
  async isBlockedAsAdmin(client: string): Promise<boolean> {
    return (await queryWithDeadline<unknown[]>(this.database, IS_BLOCKED, [client])).length > 0;
  }

  /**
   * Blocks a client under `/admin`, or lets it in again, whether it has called or not. Organizations accept it as before.
   *
   * @throws InvalidRequestError for an invalid client
   */
  async setAdminAccess({ client, blocked }: AdminClient, actor?: Actor): Promise<AdminClient> {
    const target = parseDisplayName(client, 'client', EXTERNAL_ID_LENGTH_MAX);
    await this.database.transaction(async (manager) => {
      const changed = await manager.query<unknown[]>(blocked ? BLOCK : UNBLOCK, [target]);
      if (changed.length === 0) return;
      const action = blocked ? 'client.blocked' : 'client.unblocked';
      const values = { before: { blocked: !blocked }, after: { blocked } };
      await recordChange(manager, actor, { action, organizationId: null, target, ...values });
    });
    return { client: target, blocked };
  }

  private async find(externalId: string, client: string): Promise<FoundClient | undefined> {
    const [found] = await queryWithDeadline<FoundClient[]>(this.database, AUTHENTICATE_CLIENT, [externalId, client]);
    return found;
  }

  private async add(organizationId: string, client: string): Promise<void> {
    const id = `key_${randomBytes(12).toString('hex')}`;
    const name = Array.from(client).slice(0, NAME_LENGTH_MAX).join('');
    await queryWithDeadline(this.database, ADD_CLIENT, [id, organizationId, client, name, CLIENTS_MAX], organizationId);
  }
}

/** `key_id` is null before the first call of the client. */
type FoundClient = (FoundCaller | (Omit<FoundCaller, 'key_id'> & { key_id: null })) & { blocked: boolean };

export const AUTHENTICATE_CLIENT = `
  SELECT key.id AS key_id, key.scopes, organization.id, organization.name, organization.plan, organization.keeps, key.revoked_at IS NOT NULL AS blocked,
         key.last_used_at IS NULL OR key.last_used_at < clock_now() - interval '1 minute' AS stale
    FROM organizations organization LEFT JOIN api_keys key ON key.organization_id = organization.id AND key.client = $2
    WHERE organization.external_id = $1 AND organization.deleted_at IS NULL`;

const ADD_CLIENT = 'SELECT token_client_add($1, $2, $3, $4, $5)';

const IS_BLOCKED = 'SELECT 1 FROM admin_blocked_clients WHERE client = $1';
const BLOCK = `
  INSERT INTO admin_blocked_clients (client, blocked_at) VALUES ($1, clock_now()) ON CONFLICT DO NOTHING RETURNING client`;
const UNBLOCK =
  'WITH removed AS (DELETE FROM admin_blocked_clients WHERE client = $1 RETURNING client) SELECT * FROM removed';

import type { DataSource } from 'typeorm';
import type { Caller, Scope } from '../domain/caller.js';
import type { Plan } from '../domain/plan.js';

/** The row of a key or token client with its organization. */
export interface FoundCaller {
  key_id: string;
  scopes: Scope[];
  id: string;
  name: string;
  plan: Plan;
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
  const { key_id: keyId, scopes, stale, id, name, plan } = found;
  // Not waited for: a failure, such as of a read-only server, affects no call.
  if (stale) database.query(RECORD_USE, [keyId]).catch(() => undefined);
  return { keyId, kind, scopes, organization: { id, name, plan } };
}

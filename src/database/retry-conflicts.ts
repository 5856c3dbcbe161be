import { setTimeout as sleep } from 'node:timers/promises';
import { sqlStateOf } from './database-errors.js';

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 20;

/** Serialization failure (40001, also a conflict with recovery on a standby) and deadlock (40P01). */
const CONFLICTS = new Set(['40001', '40P01']);

/**
 * Retries a statement or a transaction that PostgreSQL rolled back because of a conflict with concurrent ones.
 *
 * @param work the whole transaction
 * @param signal ends the retries; the conflict is thrown then
 */
export async function retryConflicts<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === undefined || !CONFLICTS.has(state) || attempt === ATTEMPTS_MAX || signal?.aborted) throw error;
      await sleep(Math.random() * PAUSE_MS * 2 ** attempt);
    }
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Environment } from '../config/environment.js';
import { withTimeout } from '../domain/waiting.js';

/** The bytes in their own allocation: a slice would keep the whole allocation that it belongs to alive. */
export function detached(value: Buffer): Buffer {
  if (value.buffer.byteLength === value.byteLength) return value;
  const copy = Buffer.allocUnsafeSlow(value.byteLength);
  value.copy(copy);
  return copy;
}

/** How long one call waits for the shared cache in total, beside the time that the entries it reads are worth. */
const WAIT_MAX_MS = 3_000;
/** About what the platform takes for an entry, for which the caller would pay again. */
const ENTRY_MS = 100;

const budgets = new AsyncLocalStorage<{ remainingMs: number; chargedUntilMs: number }>();

/**
 * Runs the work of one call, whose waits for the shared cache have one budget. Without a shared cache there is none: before
 * Node.js 24 a storage that has run once makes every promise of the process slower, a fifth of the time of a cached call.
 */
export function withCacheBudget<T>({ REDIS_URL }: Pick<Environment, 'REDIS_URL'>, work: () => T): T {
  return REDIS_URL === undefined ? work() : budgets.run({ remainingMs: WAIT_MAX_MS, chargedUntilMs: 0 }, work);
}

/**
 * Waits for the shared cache as long as the budget of the call allows, without limit outside of a call. Waits at the same
 * time are charged once. The work itself continues.
 *
 * @param entries that are read
 * @returns undefined when the budget is used up
 */
export async function waitForCache<T>(work: Promise<T>, entries = 0): Promise<T | undefined> {
  const budget = budgets.getStore();
  if (!budget) return work;
  const freeMs = entries * ENTRY_MS;
  const freeUntilMs = performance.now() + freeMs;
  const result = await withTimeout(work, budget.remainingMs + freeMs);
  const now = performance.now();
  budget.remainingMs -= Math.max(0, now - Math.max(freeUntilMs, budget.chargedUntilMs));
  budget.chargedUntilMs = now;
  return result;
}

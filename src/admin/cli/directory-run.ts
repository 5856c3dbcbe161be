import { createHash } from 'node:crypto';
import { resolve } from 'node:path';

/** What the runs of `archive` and `follow` have in common. */
export const SLICES_AT_ONCE = 4;
export const ENTRIES_PER_READ = 50;
/** How often the job or the subscription is looked at. */
export const INTERVAL_MS = 500;

/** The idempotency key by which a command finds what an earlier run of it for the same directory has begun. */
export function directoryKey(command: 'archive' | 'follow', out: string, request: object): string {
  return createHash('sha256')
    .update(JSON.stringify([command, resolve(out), request]))
    .digest('hex');
}

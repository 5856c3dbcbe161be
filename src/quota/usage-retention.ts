import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import type { Actor } from '../domain/caller.js';
import { UnknownCursorError } from '../domain/page.js';
import { recordChange } from '../audit/audit-trail.js';
import { Environment } from '../config/environment.js';
import { count, textOrNull } from '../domain/schema-fields.js';

/** What `prune` removed. */
export const Pruned = z
  .object({
    retentionMonths: count('The retention period in whole months, in addition to the current one.'),
    keptFrom: z.string().describe('The oldest month within the retention period, such as `2024-11`.'),
    periods: count('The number of removed months, counted per organization.'),
    calls: count('The number of removed calls.'),
    next: textOrNull('Where the next step begins (`after`). Null when nothing is left to remove.'),
  })
  .meta({ id: 'Pruned' });
export type Pruned = z.infer<typeof Pruned>;

/** Small enough to finish well within the statement timeout and to block no other statement for long. */
const BATCH = 1_000;
const AUDIT_BATCH = 10_000;

const RETAINED_FROM = `
  SELECT to_char(quota_period(clock_now()) - make_interval(months => $1), 'YYYY-MM-DD') AS kept_from`;

// Also deleted ones.
const ORGANIZATIONS = 'SELECT id FROM organizations WHERE id >= $1 ORDER BY id';

const PRUNE_AUDIT = `
  DELETE FROM audit_entries WHERE id = ANY (ARRAY(
    SELECT id FROM audit_entries WHERE at < $1::timestamp AT TIME ZONE 'UTC' ORDER BY at LIMIT $2))`;

const PRUNE_BATCH = 'SELECT * FROM quota_prune_batch($1, $2::date, $3)';

/** Removes usage, and entries of the audit trail, that are older than the retention period. */
@Injectable()
export class UsageRetention {
  /** How long a step may take, apart from its last statement; tests shorten it. */
  stepMs = 10_000;

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /**
   * Removes months before the retention period, in batches that do not lock the organization, until the time of a step is over. The
   * remaining rows are consistent at any moment, also after an interruption. The audit trail of these months goes last. Each step is
   * recorded in it.
   *
   * @param after the `next` of the step before
   * @throws UnknownCursorError
   */
  async prune(actor?: Actor, after = ''): Promise<Pruned> {
    if (after.includes('\0')) throw new UnknownCursorError(after);
    const endsAtMs = performance.now() + this.stepMs;
    const retentionMonths = this.environment.USAGE_RETENTION_MONTHS;
    const [row] = await this.database.query<{ kept_from: string }[]>(RETAINED_FROM, [retentionMonths]);
    if (!row) throw new Error('The database returned no time.');
    const pruned: Pruned = { retentionMonths, keptFrom: row.kept_from.slice(0, 7), periods: 0, calls: 0, next: null };
    const organizations = await this.database.query<{ id: string }[]>(ORGANIZATIONS, [after]);
    for (let index = 0; pruned.next === null && index < organizations.length;) {
      const { id } = organizations[index] ?? { id: '' };
      const values = [id, row.kept_from, BATCH];
      const [removed] = await this.database.query<{ periods: number; calls: number }[]>(PRUNE_BATCH, values);
      pruned.calls += removed?.calls ?? 0;
      pruned.periods += removed?.periods ?? 0;
      if (removed?.calls !== BATCH) index += 1;
      if (performance.now() >= endsAtMs) pruned.next = organizations[index]?.id ?? null;
    }
    await this.database.transaction(async (manager) => {
      if (pruned.next === null) {
        const [, entries] = await manager.query<[unknown[], number]>(PRUNE_AUDIT, [row.kept_from, AUDIT_BATCH]);
        // The last organization has nothing left, so that the next step goes on here.
        if (entries === AUDIT_BATCH) pruned.next = organizations.at(-1)?.id ?? after;
      }
      const change = { action: 'usage.pruned', organizationId: null, target: null, before: null } as const;
      await recordChange(manager, actor, { ...change, after: { ...pruned } });
    });
    return pruned;
  }
}

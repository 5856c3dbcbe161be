import { Injectable } from '@nestjs/common';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { DataSource } from 'typeorm';
import type { Actor } from '../domain/caller.js';
import { recordChange } from '../organizations/audit-trail.js';
import { Environment } from '../config/environment.js';
import { countField } from '../http/response-docs.js';

/** What `prune` removed. */
@ApiSchema({ name: 'Pruned' })
export class Pruned {
  @ApiProperty(countField('The retention period in whole months, in addition to the current one.'))
  retentionMonths: number;

  @ApiProperty({ description: 'The oldest month within the retention period, such as `2024-11`.' })
  keptFrom: string;

  @ApiProperty(countField('The number of removed months, counted per organization.'))
  periods: number;

  @ApiProperty(countField('The number of removed calls.'))
  calls: number;
}

/** Small enough to finish well within the statement timeout and to block no other statement for long. */
const BATCH_CALLS = 1_000;

const RETAINED_FROM = `
  SELECT to_char(quota_period(clock_now()) - make_interval(months => $1), 'YYYY-MM-DD') AS kept_from`;

// Also deleted ones.
const ORGANIZATIONS = 'SELECT id FROM organizations ORDER BY id';

const PRUNE_AUDIT = "DELETE FROM audit_entries WHERE at < $1::timestamp AT TIME ZONE 'UTC'";

const PRUNE_BATCH = 'SELECT * FROM quota_prune_batch($1, $2::date, $3)';

/** Removes usage, and entries of the audit trail, that are older than the retention period. */
@Injectable()
export class UsageRetention {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /**
   * Removes the months before the retention period, in batches that do not lock the organization. The remaining rows are
   * consistent at any moment, also after an interruption. The audit trail of these months goes last, when the removal is
   * recorded in it.
   */
  async prune(actor?: Actor): Promise<Pruned> {
    const retentionMonths = this.environment.USAGE_RETENTION_MONTHS;
    const [row] = await this.database.query<{ kept_from: string }[]>(RETAINED_FROM, [retentionMonths]);
    if (!row) throw new Error('The database returned no time.');
    const pruned = { retentionMonths, keptFrom: row.kept_from.slice(0, 7), periods: 0, calls: 0 };
    for (const { id } of await this.database.query<{ id: string }[]>(ORGANIZATIONS)) {
      let calls: number;
      do {
        const values = [id, row.kept_from, BATCH_CALLS];
        const [removed] = await this.database.query<{ periods: number; calls: number }[]>(PRUNE_BATCH, values);
        calls = removed?.calls ?? 0;
        pruned.calls += calls;
        pruned.periods += removed?.periods ?? 0;
      } while (calls === BATCH_CALLS);
    }
    await this.database.transaction(async (manager) => {
      await manager.query(PRUNE_AUDIT, [row.kept_from]);
      const change = { action: 'usage.pruned', organizationId: null, target: null, before: null } as const;
      await recordChange(manager, actor, { ...change, after: { ...pruned } });
    });
    return pruned;
  }
}

import { Injectable } from '@nestjs/common';
import type { Payer } from '../quota/quota.service.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { SubscriptionDto, SubscriptionRequestDto } from './dto/subscription.dto.js';
import { CHANGED, logStateChange, type ChangedRow } from './job.repository.js';
import { columnsOf, commonFields, JobTable, SECONDS_PER_HOUR, type Created, type JobRow } from './job-table.js';
import {
  CHECK_REQUEST_SECONDS,
  subscriptionRequestSchema,
  type SubscriptionReason,
  type SubscriptionState,
} from './subscription.js';

/** A row of `jobs` that is a subscription. */
type SubscriptionRow = JobRow<SubscriptionReason> & {
  check_seconds: number;
  checked_at: Date | null;
  next_check_at: Date;
};

/** A change of a subscription by its caller. */
export interface SubscriptionChange {
  checkMinutes?: number | undefined;
  state?: SubscriptionState | undefined;
}

const SECONDS_PER_MINUTE = 60;

/** The subscriptions of organizations. */
@Injectable()
export class SubscriptionRepository extends JobTable<SubscriptionDto, SubscriptionRow> {
  protected override readonly variant = 'subscription';

  /** @throws InvalidApiKeyError when the organization was deleted */
  create(
    id: string,
    request: SubscriptionRequestDto,
    payer: Payer,
    idempotencyKey: string | undefined,
  ): Promise<Created<SubscriptionDto>> {
    const { SUBSCRIPTIONS_PER_ORGANIZATION, SUBSCRIPTION_RESULTS_TTL_HOURS } = this.environment;
    const subscription = {
      ...{ id, idempotency_key: idempotencyKey, request: JSON.stringify(request) },
      check_seconds: request.checkMinutes * SECONDS_PER_MINUTE,
      results_seconds: SUBSCRIPTION_RESULTS_TTL_HOURS * SECONDS_PER_HOUR,
    };
    return this.insert(subscription, payer, SUBSCRIPTIONS_PER_ORGANIZATION, null);
  }

  async update(organizationId: string, id: string, change: SubscriptionChange): Promise<SubscriptionDto | undefined> {
    const checkSeconds = change.checkMinutes === undefined ? null : change.checkMinutes * SECONDS_PER_MINUTE;
    const state = change.state === 'active' ? 'running' : (change.state ?? null);
    const [row] = await this.change<SubscriptionRow & ChangedRow<SubscriptionReason>>(
      organizationId,
      `SELECT ${CHANGED} FROM subscription_change($1, $2, $3, $4, $5) result`,
      ...[organizationId, id, checkSeconds, state, CHECK_REQUEST_SECONDS],
    );
    if (!row) return undefined;
    logStateChange('change', row);
    return this.toDto(row);
  }

  /** @returns the seconds until a check can be requested again; null when this one is */
  async requestCheck(
    organizationId: string,
    id: string,
  ): Promise<{ subscription: SubscriptionDto; retryAfterSeconds: number | null } | undefined> {
    const [row] = await this.change<SubscriptionRow & { retry_after_seconds: number | null }>(
      organizationId,
      `SELECT result.retry_after_seconds, ${columnsOf('(result.job)')} FROM subscription_check($1, $2, $3) result`,
      ...[organizationId, id, CHECK_REQUEST_SECONDS],
    );
    return row && { subscription: this.toDto(row), retryAfterSeconds: row.retry_after_seconds };
  }

  protected override toDto(row: SubscriptionRow): SubscriptionDto {
    const { id, reason } = row;
    const request = fromJson(Buffer.from(row.request), subscriptionRequestSchema);
    if (!request) throw new Error(`The request of the subscription ${id} cannot be read.`);
    const { channel, summary, createdAt } = commonFields(row);
    const isChecked = reason !== 'paused_by_caller' && reason !== 'plan_changed';
    return {
      id,
      state: row.state === 'running' ? 'active' : 'paused',
      reason,
      channel,
      request: { ...request, checkMinutes: row.check_seconds / SECONDS_PER_MINUTE },
      summary,
      createdAt,
      checkedAt: row.checked_at?.toISOString() ?? null,
      nextCheckAt: isChecked ? row.next_check_at.toISOString() : null,
    };
  }
}

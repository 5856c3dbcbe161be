import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import type { Payer } from '../quota/quota.service.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { SubscriptionDto, SubscriptionRequestDto } from './dto/subscription.dto.js';
import {
  CHANGED,
  columnsOf,
  commonFields,
  JobRepository,
  logStateChange,
  SECONDS_PER_HOUR,
  type ChangedState,
  type JobRow,
  type ResultsRange,
  type StoredEntry,
} from './job.repository.js';
import type { JobCursor } from './job.js';
import { CHECK_REQUEST_SECONDS, subscriptionRequestSchema, type SubscriptionReason } from './subscription.js';

/** A row of `jobs` that is a subscription. */
interface SubscriptionRow extends Omit<JobRow, 'reason'> {
  reason: SubscriptionReason | null;
  check_seconds: number;
  checked_at: Date | null;
  next_check_at: Date;
  expired_sequence: number;
}

type CreateOutcome = 'created' | 'known' | 'conflict' | 'too_many' | 'too_much_stored';

/** A change of a subscription by its caller. */
export type SubscriptionChange = { [Name in 'checkMinutes' | 'state']?: SubscriptionChanges[Name] | undefined };
type SubscriptionChanges = Pick<SubscriptionDto, 'state'> & Pick<SubscriptionRequestDto, 'checkMinutes'>;

const SECONDS_PER_MINUTE = 60;

/** The subscriptions of organizations, which are jobs that do not end. Every change is one statement. */
@Injectable()
export class SubscriptionRepository {
  constructor(
    private readonly jobs: JobRepository,
    private readonly environment: Environment,
  ) {}

  /**
   * Creates a subscription, or finds the one that was created with the same idempotency key.
   *
   * @throws InvalidApiKeyError when the organization was deleted
   */
  async create(
    id: string,
    request: SubscriptionRequestDto,
    { organizationId, keyId }: Payer,
    idempotencyKey: string | undefined,
  ): Promise<{ outcome: CreateOutcome; subscription: SubscriptionDto | undefined }> {
    const { SUBSCRIPTIONS_PER_ORGANIZATION, SUBSCRIPTION_RESULTS_TTL_HOURS } = this.environment;
    const subscription = {
      ...{ id, organization_id: organizationId, key_id: keyId, idempotency_key: idempotencyKey },
      ...{ request: JSON.stringify(request), check_seconds: request.checkMinutes * SECONDS_PER_MINUTE },
      results_seconds: SUBSCRIPTION_RESULTS_TTL_HOURS * SECONDS_PER_HOUR,
    };
    const [row] = await this.jobs.change<SubscriptionRow & { outcome: CreateOutcome }>(
      organizationId,
      `SELECT result.outcome, ${columnsOf('(result.job)')} FROM job_create($1, $2, NULL, $3) result`,
      ...[JSON.stringify(subscription), SUBSCRIPTIONS_PER_ORGANIZATION, this.jobs.resultsBytesMax],
    );
    if (!row) throw new InvalidApiKeyError();
    const { outcome } = row;
    return { outcome, subscription: outcome === 'created' || outcome === 'known' ? toSubscription(row) : undefined };
  }

  async find(organizationId: string, id: string): Promise<SubscriptionDto | undefined> {
    const row = await this.jobs.findRow<SubscriptionRow>(organizationId, id);
    return row && toSubscription(row);
  }

  /** Up to `count` subscriptions, newest first, after a place in the list. */
  async list(organizationId: string, count: number, after: JobCursor | undefined): Promise<SubscriptionDto[]> {
    const rows = await this.jobs.listRows<SubscriptionRow>(organizationId, count, after, { subscriptions: true });
    return rows.map(toSubscription);
  }

  async change(organizationId: string, id: string, change: SubscriptionChange): Promise<SubscriptionDto | undefined> {
    const checkSeconds = change.checkMinutes === undefined ? null : change.checkMinutes * SECONDS_PER_MINUTE;
    const state = change.state === 'active' ? 'running' : (change.state ?? null);
    const [row] = await this.jobs.change<SubscriptionRow & ChangedState>(
      organizationId,
      `SELECT ${CHANGED} FROM subscription_change($1, $2, $3, $4) result`,
      ...[organizationId, id, checkSeconds, state],
    );
    if (!row) return undefined;
    logStateChange('change', row);
    return toSubscription(row);
  }

  /** @returns the seconds until a check can be requested again; null when this one is */
  async requestCheck(
    organizationId: string,
    id: string,
  ): Promise<{ subscription: SubscriptionDto; retryAfterSeconds: number | null } | undefined> {
    const [row] = await this.jobs.change<SubscriptionRow & { retry_after_seconds: number | null }>(
      organizationId,
      `SELECT result.retry_after_seconds, ${columnsOf('(result.job)')} FROM subscription_check($1, $2, $3) result`,
      ...[organizationId, id, CHECK_REQUEST_SECONDS],
    );
    return row && { subscription: toSubscription(row), retryAfterSeconds: row.retry_after_seconds };
  }

  /** @returns false for an unknown subscription */
  delete(organizationId: string, id: string): Promise<boolean> {
    return this.jobs.delete(organizationId, id);
  }

  /** @returns the part of the feed, and the sequence up to which results were removed */
  async results(
    organizationId: string,
    id: string,
    range: ResultsRange,
  ): Promise<{ subscription: SubscriptionDto; expiredSequence: number; entries: StoredEntry[] } | undefined> {
    const read = await this.jobs.readResults<SubscriptionRow>(organizationId, id, range);
    if (!read) return undefined;
    const { row, entries } = read;
    return { subscription: toSubscription(row), expiredSequence: row.expired_sequence, entries };
  }
}

function toSubscription(row: SubscriptionRow): SubscriptionDto {
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

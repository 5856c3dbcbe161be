import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import type { Actor } from '../domain/caller.js';
import { UpstreamError } from '../domain/errors.js';
import type { PageRequest } from '../domain/page.js';
import type { Channel } from '../domain/transcript.js';
import { storedForm, toStored, type Wanted } from '../http/routes/validation.js';
import type { Payer } from '../quota/quota.service.js';
import { Call, CallEnded } from '../transcripts/call.js';
import { ChannelUploads } from '../transcripts/sources/channel-uploads.js';
import type { SubscriptionDto, SubscriptionsPageDto } from './dto/subscription.dto.js';
import { ChangedFields, type ChangeSubscriptionDto, CreateSubscriptionDto } from './dto/subscriptions-request.dto.js';
import { sourceOf } from './job-request.js';
import { CHANGED, columnsOf, logStateChange, toSubscription, type Changed, type SubscriptionRow } from './job-row.js';
import { JobStore, type Idempotency, type OwnedResults } from './job-store.js';
import { JOB_VARIANTS } from './job-variants.js';
import type { ListFilter } from './list-filter.js';
import type { ResultsRequest } from './results/results-part.js';
import { JobWorker } from './work/job-worker.js';
import {
  SECONDS_PER_HOUR,
  CHECK_REQUEST_SECONDS,
  CheckRequestedError,
  SECONDS_PER_MINUTE,
  SubscriptionPausedError,
} from './job.js';

/** How long the creation of a subscription waits for its channel. */
const FIND_SECONDS = 5;

/** A subscription with the seconds until a check can be requested again; null when this one is. */
type CheckedRow = SubscriptionRow & { retry_after_seconds: number | null };

/** What the audit trail has of a subscription that is changed, as its caller reads it. */
const valuesOf = (job: string): string => `
  jsonb_build_object('state', CASE ${job}.state WHEN 'running' THEN 'active' ELSE 'paused' END, 'reason', ${job}.reason,
                     'checkMinutes', ${job}.check_seconds / ${SECONDS_PER_MINUTE})
    || (SELECT coalesce(jsonb_object_agg(name, ${job}.request::jsonb -> name), '{}') FROM jsonb_object_keys($7::jsonb) name)`;

/** $6 who changes it: a key pays for what is fetched from then on. $7 the fields of the request that are set. */
const CHANGE = `
  SELECT ${CHANGED}, CASE WHEN $7::jsonb ? 'keep' THEN library_catch_up(result.job) END,
         audit_record($6, 'subscription.changed', $1, $2, ${valuesOf('(result.old_job)')}, ${valuesOf('(result.job)')})
    FROM subscription_change($1, $2, $3, $4, $5, $6::json ->> 'keyId', $7) result`;

const CHECK = `SELECT result.retry_after_seconds, ${columnsOf('(result.job)')} FROM subscription_check($1, $2, $3) result`;

/** Creates subscriptions to channels and playlists and reads, changes, checks and deletes them. */
@Injectable()
export class SubscriptionsService {
  private readonly store: JobStore<SubscriptionDto, SubscriptionRow>;

  constructor(
    database: DataSource,
    private readonly environment: Environment,
    private readonly worker: JobWorker,
    private readonly channels: ChannelUploads,
  ) {
    this.store = new JobStore(JOB_VARIANTS.subscription, database, environment);
  }

  /**
   * Creates a subscription, whose channel is looked up first. The same idempotency key with the same request gives the same one
   * again, also when there is no such channel any more.
   *
   * @param payer the key that creates the subscription, and the organization that is charged
   * @throws TooManySubscriptionsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the
   * organization was deleted, and what `sourceOf` throws
   */
  async create(
    wanted: Wanted<CreateSubscriptionDto>,
    payer: Payer,
    idempotency?: Idempotency,
    actor?: Actor,
  ): Promise<SubscriptionDto> {
    const request = storedForm(CreateSubscriptionDto, wanted);
    const source = sourceOf(request);
    const { organizationId } = payer;
    const isKnown = idempotency !== undefined && (await this.store.knows(organizationId, idempotency));
    const channel =
      isKnown || request.channel === null ? undefined : await this.findChannel(request.channel, organizationId);
    const columns = {
      request: JSON.stringify(toStored(CreateSubscriptionDto, request)),
      check_seconds: request.checkMinutes * SECONDS_PER_MINUTE,
      source_id: channel?.id ?? source,
      results_seconds: this.environment.SUBSCRIPTION_RESULTS_TTL_HOURS * SECONDS_PER_HOUR,
      labels: request.labels,
      ...{ channel_id: channel?.id, channel: channel && JSON.stringify(channel) },
    };
    const subscription = await this.store.create(columns, payer, idempotency, actor);
    this.worker.wake();
    return subscription;
  }

  /** Undefined when the platform does not answer in time; then the first check looks it up. @throws ChannelNotFoundError */
  private async findChannel(text: string, organizationId: string): Promise<Channel | undefined> {
    const call = new Call(FIND_SECONDS, { organizationId });
    try {
      return await this.channels.find(text, call);
    } catch (error) {
      if (error instanceof UpstreamError || error instanceof CallEnded) return undefined;
      throw error;
    } finally {
      call.finish();
    }
  }

  /** Lists the subscriptions of an organization, newest first. @throws UnknownCursorError */
  async list(organizationId: string, page: PageRequest & ListFilter): Promise<SubscriptionsPageDto> {
    const { items: subscriptions, next } = await this.store.list(organizationId, page);
    return { subscriptions, next };
  }

  /** @throws SubscriptionNotFoundError */
  get(organizationId: string, id: string): Promise<SubscriptionDto> {
    return this.store.get(organizationId, id);
  }

  /**
   * Changes the time between checks, or what of its request holds from then on, pauses a subscription, or lets it go on from any
   * pause. The key of the actor pays for what is fetched from then on.
   *
   * @throws SubscriptionNotFoundError
   */
  async change(
    organizationId: string,
    id: string,
    { checkMinutes, state, ...fields }: ChangeSubscriptionDto,
    actor?: Actor,
  ): Promise<SubscriptionDto> {
    const checkSeconds = checkMinutes === undefined ? null : checkMinutes * SECONDS_PER_MINUTE;
    const stored = state === 'active' ? 'running' : (state ?? null);
    const form: Readonly<Record<string, unknown>> = storedForm(ChangedFields, fields);
    const given = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, form[name]]]));
    const request = JSON.stringify(Object.fromEntries(given));
    const values = [checkSeconds, stored, CHECK_REQUEST_SECONDS, actor ?? null, request];
    const row = await this.store.change<Changed<SubscriptionRow>>(CHANGE, [organizationId, id, ...values]);
    logStateChange('change', row);
    this.worker.wake();
    return toSubscription(row);
  }

  /**
   * Checks the channel or playlist now, and tries the pending uploads again.
   *
   * @throws SubscriptionNotFoundError | SubscriptionPausedError | CheckRequestedError
   */
  async check(organizationId: string, id: string): Promise<SubscriptionDto> {
    const row = await this.store.change<CheckedRow>(CHECK, [organizationId, id, CHECK_REQUEST_SECONDS]);
    if (row.reason === 'paused_by_caller') throw new SubscriptionPausedError();
    if (row.retry_after_seconds !== null) throw new CheckRequestedError(row.retry_after_seconds);
    this.worker.wake();
    return toSubscription(row);
  }

  /** Deletes a subscription with its results. What its running slice fetches is charged. @throws SubscriptionNotFoundError */
  delete(organizationId: string, id: string, actor?: Actor): Promise<void> {
    return this.store.delete(organizationId, id, actor);
  }

  /** The entries of a subscription in the order in which they became final. @throws SubscriptionNotFoundError | CursorExpiredError | CursorUnknownError */
  results(organizationId: string, id: string, page: ResultsRequest): Promise<OwnedResults<SubscriptionDto>> {
    return this.store.results(organizationId, id, page);
  }
}

import { randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { bytesToBase62 } from '../domain/base62.js';
import { toPage } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { SubscriptionDto, SubscriptionRequestDto, SubscriptionsPageDto } from './dto/subscription.dto.js';
import { IdempotencyConflictError, parseCursor, StoredResultsLimitError, toCursor } from './job.js';
import type { StoredEntry } from './job.repository.js';
import { JobWorker } from './job-worker.js';
import { requireChannelReference } from './job-request.js';
import { foundById, READ_BYTES_MAX } from './jobs.service.js';
import { SubscriptionRepository, type SubscriptionChange } from './subscription.repository.js';
import {
  CHECK_MINUTES_DEFAULT,
  CheckRequestedError,
  CursorExpiredError,
  SUBSCRIPTION_ID,
  SubscriptionNotFoundError,
  SubscriptionPausedError,
  TooManySubscriptionsError,
} from './subscription.js';

/** The request of a new subscription: what is absent has its default. */
export type WantedSubscription = Pick<SubscriptionRequestDto, 'channel'> & {
  [Name in keyof Omit<SubscriptionRequestDto, 'channel'>]?: SubscriptionRequestDto[Name] | undefined;
};

/** A part of the results of a subscription, in the order in which they became final. */
export interface FeedPage {
  entries: StoredEntry[];
  /** The `after` of the next page. */
  next: number;
  subscription: SubscriptionDto;
}

/** Creates subscriptions to channels and reads, changes, checks and deletes them. */
@Injectable()
export class SubscriptionsService {
  private readonly logger = new Logger(SubscriptionsService.name);

  constructor(
    private readonly store: SubscriptionRepository,
    private readonly worker: JobWorker,
    private readonly environment: Environment,
  ) {}

  /**
   * Creates a subscription. The same idempotency key with the same request gives the same one again.
   *
   * @param payer the key that creates the subscription, and the organization that is charged
   * @throws TooManySubscriptionsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the
   * organization was deleted | ChannelNotFoundError when the text is no reference to a channel
   */
  async create(wanted: WantedSubscription, payer: Payer, idempotencyKey?: string): Promise<SubscriptionDto> {
    const request = requestOf(wanted);
    requireChannelReference(request.channel);
    const id = `sub_${bytesToBase62(randomBytes(16))}`;
    const { outcome, subscription } = await this.store.create(id, request, payer, idempotencyKey);
    if (outcome === 'conflict') throw new IdempotencyConflictError();
    if (outcome === 'too_much_stored')
      throw new StoredResultsLimitError({ megabytes: this.environment.JOB_RESULTS_MAX_MEGABYTES });
    if (!subscription) throw new TooManySubscriptionsError(this.environment.SUBSCRIPTIONS_PER_ORGANIZATION);
    if (outcome === 'created') {
      this.logger.log({ event: 'subscription_created', subscriptionId: id, ...payer });
      this.worker.wake();
    }
    return subscription;
  }

  /** Lists the subscriptions of an organization, newest first. @throws UnknownCursorError */
  async list(
    organizationId: string,
    { limit, after }: { limit: number; after?: string | undefined },
  ): Promise<SubscriptionsPageDto> {
    const place = after === undefined ? undefined : parseCursor(after, SUBSCRIPTION_ID);
    const rows = await this.store.list(organizationId, limit + 1, place);
    const { items: subscriptions, next } = toPage(rows, limit, toCursor);
    return { subscriptions, next };
  }

  /** @throws SubscriptionNotFoundError */
  get(organizationId: string, id: string): Promise<SubscriptionDto> {
    return found(id, () => this.store.find(organizationId, id));
  }

  /** Changes the time between checks, pauses a subscription, or lets it go on from any pause. @throws SubscriptionNotFoundError */
  async change(organizationId: string, id: string, change: SubscriptionChange): Promise<SubscriptionDto> {
    const subscription = await found(id, () => this.store.change(organizationId, id, change));
    this.worker.wake();
    return subscription;
  }

  /** Deletes a subscription and its results. What is being fetched is charged. @throws SubscriptionNotFoundError */
  async delete(organizationId: string, id: string): Promise<void> {
    await found(id, async () => (await this.store.delete(organizationId, id)) || undefined);
    this.logger.log({ event: 'subscription_deleted', subscriptionId: id, organizationId });
  }

  /**
   * Checks the channel now, and tries the pending uploads again.
   *
   * @throws SubscriptionNotFoundError | SubscriptionPausedError | CheckRequestedError
   */
  async check(organizationId: string, id: string): Promise<SubscriptionDto> {
    const { subscription, retryAfterSeconds } = await found(id, () => this.store.requestCheck(organizationId, id));
    if (subscription.reason === 'paused_by_caller') throw new SubscriptionPausedError();
    if (retryAfterSeconds !== null) throw new CheckRequestedError(retryAfterSeconds);
    this.worker.wake();
    return subscription;
  }

  /**
   * The entries in the order in which they became final.
   *
   * @param page.after the `next` of the last page; undefined to begin with the oldest entry that is stored
   * @throws SubscriptionNotFoundError | CursorExpiredError
   */
  async results(
    organizationId: string,
    id: string,
    { limit: count, after }: { limit: number; after?: number | undefined },
  ): Promise<FeedPage> {
    const range = { count, after: after ?? 0, bytesMax: READ_BYTES_MAX };
    const feed = await found(id, () => this.store.results(organizationId, id, range));
    const { subscription, expiredSequence, entries } = feed;
    if (after !== undefined && after < expiredSequence) throw new CursorExpiredError(expiredSequence);
    const { succeeded, failed } = subscription.summary;
    // A cursor from before a restore of the database can be beyond the last entry: kept, it would pass later ones.
    const next = entries.at(-1)?.sequence ?? Math.min(after ?? expiredSequence, succeeded + failed);
    return { subscription, entries, next };
  }
}

/** The whole request of a new subscription. */
function requestOf(wanted: WantedSubscription): SubscriptionRequestDto {
  const { channel, languages = [], match = 'all', kinds = [], include = [], chunkSeconds = null } = wanted;
  const { checkMinutes = CHECK_MINUTES_DEFAULT, start = 'now' } = wanted;
  return { channel, languages, match, kinds, include, chunkSeconds, checkMinutes, start };
}

/** What a statement returns for a subscription. @throws SubscriptionNotFoundError */
function found<T>(id: string, lookUp: () => Promise<T | undefined>): Promise<T> {
  return foundById(SUBSCRIPTION_ID.test(id), SubscriptionNotFoundError, lookUp);
}

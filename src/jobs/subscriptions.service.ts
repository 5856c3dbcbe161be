import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { PageRequest } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { SubscriptionDto, SubscriptionRequestDto, SubscriptionsPageDto } from './dto/subscription.dto.js';
import { JobOperations } from './job-operations.js';
import type { StoredEntry } from './job-table.js';
import { JobWorker } from './job-worker.js';
import { requireChannelReference } from './job-request.js';
import { SubscriptionRepository, type SubscriptionChange } from './subscription.repository.js';
import {
  CheckRequestedError,
  CursorExpiredError,
  SubscriptionPausedError,
  subscriptionRequestSchema,
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
export class SubscriptionsService extends JobOperations<SubscriptionDto> {
  protected override readonly variant = 'subscription';

  constructor(
    protected override readonly store: SubscriptionRepository,
    worker: JobWorker,
    environment: Environment,
  ) {
    super(store, worker, environment);
  }

  /**
   * Creates a subscription. The same idempotency key with the same request gives the same one again.
   *
   * @param payer the key that creates the subscription, and the organization that is charged
   * @throws TooManySubscriptionsError | StoredResultsLimitError | IdempotencyConflictError | InvalidApiKeyError when the
   * organization was deleted | ChannelNotFoundError when the text is no reference to a channel
   */
  async create(wanted: WantedSubscription, payer: Payer, idempotencyKey?: string): Promise<SubscriptionDto> {
    const request = subscriptionRequestSchema.parse(wanted);
    requireChannelReference(request.channel);
    return this.add(payer, (id) => this.store.create(id, request, payer, idempotencyKey));
  }

  /** Lists the subscriptions of an organization, newest first. @throws UnknownCursorError */
  async list(organizationId: string, page: PageRequest): Promise<SubscriptionsPageDto> {
    const { items: subscriptions, next } = await this.page(organizationId, page);
    return { subscriptions, next };
  }

  /** Changes the time between checks, pauses a subscription, or lets it go on from any pause. @throws SubscriptionNotFoundError */
  async change(organizationId: string, id: string, change: SubscriptionChange): Promise<SubscriptionDto> {
    const subscription = await this.found(id, () => this.store.update(organizationId, id, change));
    this.worker.wake();
    return subscription;
  }

  /**
   * Checks the channel now, and tries the pending uploads again.
   *
   * @throws SubscriptionNotFoundError | SubscriptionPausedError | CheckRequestedError
   */
  async check(organizationId: string, id: string): Promise<SubscriptionDto> {
    const { subscription, retryAfterSeconds } = await this.found(id, () => this.store.requestCheck(organizationId, id));
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
    { limit, after }: { limit: number; after?: number | undefined },
  ): Promise<FeedPage> {
    const results = await this.found(id, () => this.store.results(organizationId, id, limit, after ?? 0));
    const { job: subscription, expiredSequence, entries } = results;
    if (after !== undefined && after < expiredSequence) throw new CursorExpiredError(expiredSequence);
    const { succeeded, failed } = subscription.summary;
    // A cursor from before a restore of the database can be beyond the last entry: kept, it would pass later ones.
    const next = entries.at(-1)?.sequence ?? Math.min(after ?? expiredSequence, succeeded + failed);
    return { subscription, entries, next };
  }

  protected override tooMany(): Error {
    return new TooManySubscriptionsError(this.environment.SUBSCRIPTIONS_PER_ORGANIZATION);
  }
}

import { Injectable } from '@nestjs/common';
import type { Payer } from '../quota/quota.service.js';
import type { SubscriptionDto, SubscriptionRequestDto } from './dto/subscription.dto.js';
import type { JobCursor } from './job.js';
import type { StoredEntry } from './job.repository.js';

/** What creating a subscription came to. */
export interface CreatedSubscription {
  outcome: 'created' | 'known' | 'conflict' | 'too_many' | 'too_much_stored';
  /** Undefined when it was refused. */
  subscription: SubscriptionDto | undefined;
}

/** A change of a subscription by its caller. */
export interface SubscriptionChange {
  checkMinutes?: number | undefined;
  state?: SubscriptionDto['state'] | undefined;
}

/** A subscription whose check a caller has asked for. */
export interface RequestedCheck {
  subscription: SubscriptionDto;
  /** Until a check can be requested; null when this one is. */
  retryAfterSeconds: number | null;
}

/** A part of the feed. */
export interface Feed {
  subscription: SubscriptionDto;
  /** The results up to here were deleted. */
  expiredSequence: number;
  entries: StoredEntry[];
}

/** The subscriptions of organizations, which are jobs that do not end. Every change is one statement. */
@Injectable()
export abstract class SubscriptionRepository {
  abstract create(
    id: string,
    request: SubscriptionRequestDto,
    payer: Payer,
    idempotencyKey: string | undefined,
  ): Promise<CreatedSubscription>;

  abstract list(organizationId: string, count: number, after: JobCursor | undefined): Promise<SubscriptionDto[]>;

  abstract find(organizationId: string, id: string): Promise<SubscriptionDto | undefined>;

  abstract change(organizationId: string, id: string, change: SubscriptionChange): Promise<SubscriptionDto | undefined>;

  abstract delete(organizationId: string, id: string): Promise<boolean>;

  abstract requestCheck(organizationId: string, id: string): Promise<RequestedCheck | undefined>;

  abstract results(
    organizationId: string,
    id: string,
    page: { count: number; after: number | undefined; bytesMax: number },
  ): Promise<Feed | undefined>;
}

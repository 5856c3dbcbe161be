import { counted, DomainError, fixedError } from '../domain/errors.js';

export const SUBSCRIPTION_STATES = ['active', 'paused'] as const;
export type SubscriptionState = (typeof SUBSCRIPTION_STATES)[number];

/** Why a subscription is paused, or what an active one waits for. */
export const SUBSCRIPTION_REASONS = [
  'plan_limit_exceeded',
  'upstream_blocked',
  'plan_changed',
  'list_incomplete',
  'channel_not_found',
  'playlist_not_found',
  'paused_by_caller',
] as const;
export type SubscriptionReason = (typeof SUBSCRIPTION_REASONS)[number];

export const SECONDS_PER_MINUTE = 60;

/** The time between two checks that a caller asks for. */
export const CHECK_REQUEST_SECONDS = 10;

/** What is delivered first: `now` for what is uploaded from now on, a number of the newest uploads, or those above a video. */
export type Start = number | string;

export class SubscriptionNotFoundError extends fixedError(
  'subscription_not_found',
  'Subscription not found. Your organization has no subscription with this ID, or it was deleted.',
) {}

/** The caller has paused the subscription, so that it is not checked. */
export class SubscriptionPausedError extends fixedError(
  'conflict',
  'You have paused this subscription. Set its state to "active" with PATCH /subscriptions/{id}, which checks at once.',
) {}

/** A slot becomes free only when a subscription is deleted. */
const SUBSCRIPTIONS_RETRY_AFTER_SECONDS = 60;

/** The organization has the maximum number of subscriptions. */
export class TooManySubscriptionsError extends DomainError {
  constructor(subscriptionsMax: number) {
    super(
      'too_many_subscriptions',
      `Your organization has reached the limit of ${counted(subscriptionsMax, 'subscription')}, paused ones included. ` +
        'Delete one first.',
      { retryAfterSeconds: SUBSCRIPTIONS_RETRY_AFTER_SECONDS },
    );
  }
}

/** The caller has asked for a check a moment ago. */
export class CheckRequestedError extends DomainError {
  constructor(retryAfterSeconds: number) {
    super(
      'rate_limited',
      `A check of this subscription can be requested every ${CHECK_REQUEST_SECONDS} seconds. ` +
        `Retry after ${counted(retryAfterSeconds, 'second')}.`,
      { retryAfterSeconds },
    );
  }
}

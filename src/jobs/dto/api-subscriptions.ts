import { applyDecorators } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import { RequiresApiKey } from '../../auth/auth.decorators.js';
import { ApiErrors } from '../../http/error-docs.js';
import { OwnRateLimit } from '../../rate-limit/rate-limit.guard.js';
import { SubscriptionNotFoundError } from '../subscription.js';
import { SUBSCRIPTION_EXAMPLE } from './subscription.dto.js';

/** The name of the count of the operations on existing subscriptions. */
export const SUBSCRIPTIONS_RATE_LIMIT = 'subscriptions';

/** Guards an operation on the subscriptions that exist, which is on every plan and has a rate limit of its own. */
export function OnSubscriptions(limits?: { limitsConcurrency: boolean }): MethodDecorator {
  return applyDecorators(RequiresApiKey(limits), OwnRateLimit(SUBSCRIPTIONS_RATE_LIMIT));
}

/** The same for an operation on one subscription. */
export function OnSubscription(limits?: { limitsConcurrency: boolean }): MethodDecorator {
  const description = 'The ID of the subscription (`sub_…`).';
  return applyDecorators(
    OnSubscriptions(limits),
    ApiParam({ name: 'id', description, schema: { type: 'string', example: SUBSCRIPTION_EXAMPLE.id } }),
    ApiErrors({ title: 'The organization has no subscription with this ID', error: new SubscriptionNotFoundError() }),
  );
}

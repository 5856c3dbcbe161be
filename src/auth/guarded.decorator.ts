import { applyDecorators, UseGuards } from '@nestjs/common';
import { ApiBearerAuth } from '@nestjs/swagger';
import type { Feature } from '../domain/plan.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { CallsInFlightGuard } from '../rate-limit/calls-in-flight.guard.js';
import { NeedsFeature, PlanGuard } from './plan.guard.js';
import { RateLimitGuard } from '../rate-limit/rate-limit.guard.js';

/** The name of the Bearer scheme in the OpenAPI document. */
export const API_KEY_SCHEME = 'apiKey';

/** The gates of a route that needs a feature, in the one order in which they work: who, may they, how often, how many at once. */
export function RequiresFeature(feature: Feature): MethodDecorator & ClassDecorator {
  return applyDecorators(
    NeedsFeature(feature),
    UseGuards(ApiKeyGuard, PlanGuard, RateLimitGuard, CallsInFlightGuard),
    ApiBearerAuth(API_KEY_SCHEME),
  );
}

/** The gates of a route that any organization may use. */
export function RequiresApiKey(): MethodDecorator & ClassDecorator {
  return applyDecorators(UseGuards(ApiKeyGuard, RateLimitGuard), ApiBearerAuth(API_KEY_SCHEME));
}

import { applyDecorators, UseGuards } from '@nestjs/common';
import { ApiBearerAuth } from '@nestjs/swagger';
import { FeatureNotInPlanError } from '../domain/errors.js';
import { planIncludes, PLANS, requiredPlan, type Feature } from '../domain/plan.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { CallsInFlightGuard } from '../rate-limit/calls-in-flight.guard.js';
import { RateLimitGuard } from '../rate-limit/rate-limit.guard.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { PermissionGuard, RequiredFeature } from './permission.guard.js';

/** The name of the Bearer scheme in the OpenAPI document. */
export const API_KEY_SCHEME = 'apiKey';

/** The same for access tokens of the identity provider. */
export const TOKEN_SCHEME = 'accessToken';

interface Limits {
  /** @see CallsInFlight for what counts against the concurrency limits */
  limitsConcurrency?: boolean;
  /** False for a route that counts what it calls against the limit per minute by itself. */
  limitsRate?: boolean;
}

/**
 * Guards a route that needs a feature, in the only valid order: authentication, scope and plan, rate limit, concurrency limit.
 *
 * @param limitsConcurrency false for a route that does not wait for YouTube
 */
export function RequiresFeature(
  feature: Feature,
  { limitsConcurrency = true }: Limits = {},
): MethodDecorator & ClassDecorator {
  const [plan] = PLANS;
  const refusal = {
    title: `The plan does not include ${feature.replaceAll('_', ' ')}`,
    error: new FeatureNotInPlanError(feature, plan, requiredPlan(feature)),
  };
  return applyDecorators(
    ApiErrors(...(planIncludes(plan, feature) ? [] : [refusal])),
    RequiredFeature(feature),
    guardedBy({ limitsConcurrency }),
  );
}

/**
 * Guards a route that is available on every plan.
 *
 * @param limitsConcurrency for a route whose response can take long
 */
export function RequiresApiKey(limits: Limits = {}): MethodDecorator & ClassDecorator {
  return guardedBy(limits);
}

function guardedBy({ limitsRate = true, limitsConcurrency = false }: Limits) {
  const limits = [...(limitsRate ? [RateLimitGuard] : []), ...(limitsConcurrency ? [CallsInFlightGuard] : [])];
  return applyDecorators(
    UseGuards(ApiKeyGuard, PermissionGuard, ...limits),
    ApiBearerAuth(API_KEY_SCHEME),
    ApiBearerAuth(TOKEN_SCHEME),
  );
}

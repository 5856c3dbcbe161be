import { applyDecorators, UseGuards } from '@nestjs/common';
import { ApiBearerAuth } from '@nestjs/swagger';
import { FeatureNotInPlanError } from '../domain/errors.js';
import { planIncludes, PLANS, requiredPlan, type Feature } from '../domain/plan.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { ApiKeyGuard, CallLimitsGuard, CallRules, PlanGuard } from './call.guards.js';

/** The name of the Bearer scheme in the OpenAPI document. */
export const API_KEY_SCHEME = 'apiKey';

/** The same for access tokens of the identity provider. */
export const TOKEN_SCHEME = 'accessToken';

/**
 * Guards a route that needs a feature.
 *
 * @param rules `limitsConcurrency: false` for a route that does not wait for YouTube
 */
export function RequiresFeature(feature: Feature, rules: Partial<CallRules> = {}): MethodDecorator & ClassDecorator {
  const [plan] = PLANS;
  const refusal = {
    title: `The plan does not include ${feature.replaceAll('_', ' ')}`,
    error: new FeatureNotInPlanError(feature, plan, requiredPlan(feature)),
  };
  return applyDecorators(
    ApiErrors(...(planIncludes(plan, feature) ? [] : [refusal])),
    guardedBy({ feature, limitsRate: true, limitsConcurrency: true, ...rules }),
  );
}

/**
 * Guards a route that is available on every plan.
 *
 * @param rules `limitsConcurrency: true` for a route whose response can take long
 */
export function RequiresApiKey(rules: Partial<CallRules> = {}): MethodDecorator & ClassDecorator {
  return guardedBy({ limitsRate: true, limitsConcurrency: false, ...rules });
}

function guardedBy(rules: CallRules) {
  return applyDecorators(
    CallRules(rules),
    UseGuards(ApiKeyGuard, PlanGuard, CallLimitsGuard),
    ApiErrors(
      ...(rules.limitsRate ? (['rate_limited'] as const) : []),
      ...(rules.limitsConcurrency ? (['concurrency_limited', 'at_capacity'] as const) : []),
    ),
    ApiBearerAuth(API_KEY_SCHEME),
    ApiBearerAuth(TOKEN_SCHEME),
  );
}

import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { FeatureNotInPlanError } from '../domain/errors.js';
import { planIncludes, requiredPlan, type Feature } from '../domain/plan.js';
import { requestContextOf } from '../http/request-context.js';
import { RateLimitGuard } from '../rate-limit/rate-limit.guard.js';

/** Names the feature that a route belongs to, for `PlanGuard`. */
export const RequiredFeature = Reflector.createDecorator<Feature>();

/** Refuses a caller whose organization's plan lacks the route's feature (403). The call counts for the rate limit. */
@Injectable()
export class PlanGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly rateLimit: RateLimitGuard,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const feature = this.reflector.getAllAndOverride(RequiredFeature, [execution.getHandler(), execution.getClass()]);
    if (!feature) throw new Error('PlanGuard guards a route without RequiredFeature.');
    const context = requestContextOf(execution);
    const { plan } = context.caller.organization;
    if (planIncludes(plan, feature)) return true;
    await this.rateLimit.refusalOf(context);
    throw new FeatureNotInPlanError(feature, plan, requiredPlan(feature));
  }
}

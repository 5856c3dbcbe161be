import { Injectable, SetMetadata, type CanActivate, type CustomDecorator, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { FeatureNotInPlanError } from '../domain/errors.js';
import { planIncludes, requiredPlan, type Feature } from '../domain/plan.js';
import { callerOf } from './caller.js';
import { inboundCallOf } from './inbound-call.js';
import { RateLimitGuard } from '../rate-limit/rate-limit.guard.js';

const FEATURE = 'access:feature';

/** Names the feature that a route belongs to, for `PlanGuard`. */
export const NeedsFeature = (feature: Feature): CustomDecorator => SetMetadata(FEATURE, feature);

/** May they: refuses a caller whose organization's plan lacks the route's feature (403). That counts as a call too. */
@Injectable()
export class PlanGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly rate: RateLimitGuard,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const feature = this.reflector.getAllAndOverride<Feature | undefined>(FEATURE, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (feature === undefined) throw new Error('PlanGuard guards a route that names no feature.');
    const { plan } = callerOf(inboundCallOf(context).subject).organization;
    if (planIncludes(plan, feature)) return true;
    await this.rate.count(context);
    throw new FeatureNotInPlanError(feature, plan, requiredPlan(feature));
  }
}

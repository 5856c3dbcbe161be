import { Injectable, SetMetadata, type CanActivate, type CustomDecorator, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { FeatureNotInPlanError } from '../domain/errors.js';
import { planIncludes, requiredPlan, type Feature } from '../domain/plan.js';
import { callerOf } from './caller.js';

const FEATURE = 'access:feature';

/** Names the feature that a route belongs to, for `PlanGuard`. */
export const NeedsFeature = (feature: Feature): CustomDecorator => SetMetadata(FEATURE, feature);

/** May they: refuses a caller whose organization's plan lacks the route's feature (403). */
@Injectable()
export class PlanGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const feature = this.reflector.getAllAndOverride<Feature | undefined>(FEATURE, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (feature === undefined) throw new Error('PlanGuard guards a route that names no feature.');
    const { plan } = callerOf(context.switchToHttp().getRequest<Request>()).organization;
    if (!planIncludes(plan, feature)) throw new FeatureNotInPlanError(feature, plan, requiredPlan(feature));
    return true;
  }
}

import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Scope } from '../domain/caller.js';
import { FeatureNotInPlanError, ScopeMissingError } from '../domain/errors.js';
import { planIncludes, requiredPlan, type Feature } from '../domain/plan.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requestContextOf, type RequestContext } from '../http/server/request-context.js';
import { requiredScope } from '../http/routes/routes.js';
import { OwnRateLimit, RateLimitGuard } from '../rate-limit/rate-limit.guard.js';

/** Names the feature that a route belongs to, for `PermissionGuard`. */
export const RequiredFeature = Reflector.createDecorator<Feature>();

/**
 * Requires the scope of a key or token, and a feature of the plan. The log line of a call that may change something has what its
 * entry in the audit trail has.
 *
 * @param feature undefined for what is on every plan
 * @throws ScopeMissingError, FeatureNotInPlanError
 */
export function requirePermission(context: RequestContext, scope: Scope, feature: Feature | undefined): void {
  const { kind, scopes, organization } = context.caller;
  if (!scopes.includes(scope)) throw new ScopeMissingError(scope, kind);
  if (feature !== undefined && !planIncludes(organization.plan, feature))
    throw new FeatureNotInPlanError(feature, organization.plan, requiredPlan(feature));
  if (scope === 'write') Object.assign(context.log, { address: context.address, callId: context.callId });
}

/** Refuses a caller without the scope or the plan that the route requires (403). The call counts for the rate limit. */
@ApiErrors('read_scope_missing', 'write_scope_missing')
@Injectable()
export class PermissionGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly rateLimit: RateLimitGuard,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const places = [execution.getHandler(), execution.getClass()];
    const feature = this.reflector.getAllAndOverride<Feature, Feature | undefined>(RequiredFeature, places);
    const context = requestContextOf(execution);
    try {
      requirePermission(context, requiredScope(places), feature);
    } catch (error) {
      await this.rateLimit.refusalOf(context, this.reflector.get(OwnRateLimit, execution.getHandler()));
      throw error;
    }
    return true;
  }
}

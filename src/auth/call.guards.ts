import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Scope } from '../domain/caller.js';
import { FeatureNotInPlanError, ScopeMissingError } from '../domain/errors.js';
import { planIncludes, requiredPlan, type Feature } from '../domain/plan.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requiredScope } from '../http/routes/routes.js';
import { requestContextOf, type RequestContext } from '../http/server/request-context.js';
import { CallRate } from '../rate-limit/call-rate.js';
import { CallsInFlight } from '../rate-limit/calls-in-flight.js';
import { OrganizationNotLinkedError, TOKEN_REFUSALS } from './auth-errors.js';
import { Authentication } from './authentication.js';
import { FeedLinksService, type FoundFeedLink } from '../organizations/feed-links.service.js';

/** What a route or a message requires of its callers. */
export interface CallRules {
  /** Undefined for what is on every plan. */
  feature?: Feature;
  /** False for a route that counts what it calls against the limit per minute by itself. */
  limitsRate: boolean;
  /** @see CallsInFlight for what counts against the concurrency limits */
  limitsConcurrency: boolean;
  /** The name of a count of its own against the limit per minute. The other routes share one. */
  countedAs?: string;
}

/** Notes the rules on a handler or a controller, for the guards of calls. */
export const CallRules = Reflector.createDecorator<CallRules>();

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

const rulesOf = (reflector: Reflector, execution: ExecutionContext): CallRules =>
  reflector.getAllAndOverride(CallRules, placesOf(execution));

const placesOf = (execution: ExecutionContext) => [execution.getHandler(), execution.getClass()];

// A call over HTTP or as a message passes these guards in this order. `guardedBy` puts them on its route.

/** Who calls: by the API key or the access token (401, 403). */
@ApiErrors(
  'unauthorized',
  'invalid_api_key',
  new OrganizationNotLinkedError('org_id', 'acme'),
  ...TOKEN_REFUSALS,
  'failed_authentications',
  'internal_error',
  'service_unavailable',
)
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(private readonly authentication: Authentication) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const context = requestContextOf(execution);
    const caller = await this.authentication.caller(context);
    context.caller = caller;
    Object.assign(context.log, { organizationId: caller.organization.id, keyId: caller.keyId });
    return true;
  }
}

/** May they: the plan and the scope (403). A refusal counts for the limit per minute, also where other calls do not. */
@ApiErrors('read_scope_missing', 'write_scope_missing')
@Injectable()
export class PlanGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly rate: CallRate,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const { feature, countedAs } = rulesOf(this.reflector, execution);
    const context = requestContextOf(execution);
    try {
      requirePermission(context, requiredScope(placesOf(execution)), feature);
    } catch (error) {
      await this.rate.refusal(context, countedAs);
      throw error;
    }
    return true;
  }
}

/** How often (429), and how many at once (429, 503). */
@Injectable()
export class CallLimitsGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly rate: CallRate,
    private readonly calls: CallsInFlight,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const { limitsRate, countedAs, limitsConcurrency } = rulesOf(this.reflector, execution);
    const context = requestContextOf(execution);
    const refusal = limitsRate ? await this.rate.refusal(context, countedAs) : undefined;
    if (refusal) throw refusal;
    if (limitsConcurrency) this.calls.acquire(context.caller, context.ended());
    return true;
  }
}

/** Lets in who reads a feed, by the token in its address. Instead of the guards of calls, because feed readers send no header. */
@Injectable()
export class FeedAccess {
  constructor(
    private readonly links: FeedLinksService,
    private readonly rate: CallRate,
    private readonly calls: CallsInFlight,
  ) {}

  /**
   * The reader is from then on a caller of the organization that may only read.
   *
   * @param what has a count of its own
   * @throws FeedNotFoundError, FeedRateExceededError, ConcurrencyLimitReachedError, ServiceAtCapacityError
   */
  async enter(context: RequestContext, token: string, what: 'feed' | 'transcript'): Promise<FoundFeedLink> {
    const link = await this.links.find(token);
    const { id, organization } = link;
    context.caller = { keyId: id, kind: 'key', scopes: ['read'], organization };
    Object.assign(context.log, { organizationId: organization.id, feedLinkId: id });
    await this.rate.countFeedRead(`${what}:${id}`);
    this.calls.acquire(context.caller, context.ended());
    return link;
  }
}

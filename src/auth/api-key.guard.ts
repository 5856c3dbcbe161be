import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { InvalidApiKeyError, UnauthorizedError } from '../domain/errors.js';
import { ApiErrors } from '../http/error-docs.js';
import { requestContextOf, type RequestContext } from '../http/request-context.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import { FailedAuthentications } from './failed-authentications.js';

/**
 * Refuses a call without a valid API key (401). An address that keeps failing is refused (429) without a lookup, unless
 * the key was valid recently: guesses cost the database nothing, and they lock out no customer of the same address.
 */
@ApiErrors('unauthorized', 'invalid_api_key', 'failed_authentications', 'internal_error', 'service_unavailable')
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly apiKeys: ApiKeysService,
    private readonly failed: FailedAuthentications,
    private readonly metrics: RejectionMetrics,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const context = requestContextOf(execution);
    const { apiKey } = context;
    if (!this.isVerified(context)) await this.failed.refuseThrottled(context);
    const caller = apiKey === undefined ? undefined : await this.apiKeys.authenticate(apiKey);
    if (!caller) {
      this.metrics.count(apiKey === undefined ? 'no_key' : 'invalid_key');
      await this.failed.record(context);
      throw apiKey === undefined ? new UnauthorizedError(context.credentialLocation) : new InvalidApiKeyError(apiKey);
    }
    context.caller = caller;
    Object.assign(context.log, { organizationId: caller.organization.id, keyId: caller.keyId });
    return true;
  }

  /** Counts a call that is refused before its key is looked up as a failure, unless the key was valid recently. */
  async recordUnverified(context: RequestContext): Promise<void> {
    if (!this.isVerified(context)) await this.failed.record(context);
  }

  private isVerified({ apiKey }: RequestContext): boolean {
    return apiKey !== undefined && this.apiKeys.wasRecentlyValid(apiKey);
  }
}

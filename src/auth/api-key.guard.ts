import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { InvalidApiKeyError, UnauthorizedError } from '../domain/errors.js';
import { requestContextOf } from '../http/request-context.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import { FailedAuthentications } from './failed-authentications.js';

/** Refuses a call without a valid API key (401), and after too many of those every further one of its address (429). */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly apiKeys: ApiKeysService,
    private readonly failed: FailedAuthentications,
    private readonly metrics: RejectionMetrics,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const call = requestContextOf(context);
    const { apiKey } = call;
    const caller =
      apiKey === undefined
        ? undefined
        : await this.apiKeys.authenticate(apiKey, { fromSuspect: this.failed.isThrottled(call) });
    if (!caller) {
      this.metrics.count(apiKey === undefined ? 'no_key' : 'invalid_key');
      await this.failed.record(call);
      throw apiKey === undefined ? new UnauthorizedError(call.credentialLocation) : new InvalidApiKeyError();
    }
    call.caller = caller;
    Object.assign(call.log, { organizationId: caller.organization.id, keyId: caller.keyId });
    return true;
  }
}

import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { InvalidApiKeyError, UnauthorizedError } from '../domain/errors.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import type { Caller } from '../organizations/caller.js';
import { RejectionCounts } from '../rate-limit/rejection-counts.js';
import { setCaller } from './caller.js';
import { inboundCallOf, type InboundCall } from './inbound-call.js';
import { FailedAuthentications } from './failed-authentications.js';

/** Who calls: refuses a request without a valid API key (401), and an address that has sent too many of those (429). */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly apiKeys: ApiKeysService,
    private readonly failed: FailedAuthentications,
    private readonly events: RejectionCounts,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const call = inboundCallOf(context);
    const key = call.apiKey;
    const caller = key === undefined ? undefined : await this.authenticated(call, key);
    if (!caller) {
      this.events.count(key === undefined ? 'no_key' : 'invalid_key');
      await this.failed.note(call);
      throw key === undefined ? new UnauthorizedError(call.credentialLocation) : new InvalidApiKeyError();
    }
    setCaller(call.subject, caller);
    Object.assign(call.log, { organizationId: caller.organization.id, keyId: caller.keyId });
    return true;
  }

  private authenticated(call: InboundCall, key: string): Promise<Caller | undefined> {
    return this.apiKeys.authenticate(key, { fromSuspect: this.failed.isHeldBack(call) });
  }
}

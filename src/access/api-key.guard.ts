import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { InvalidApiKeyError, UnauthorizedError } from '../domain/errors.js';
import { bearerToken } from '../http/bearer.js';
import { requestContext } from '../http/request-context.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import { AccessEvents } from './access-events.js';
import { setCaller } from './caller.js';
import { FailedAuthentications } from './failed-authentications.js';

/** Who calls: refuses a request without a valid API key (401), and an address that has sent too many of those (429). */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly apiKeys: ApiKeysService,
    private readonly failed: FailedAuthentications,
    private readonly events: AccessEvents,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const key = bearerToken(request);
    const caller = key === undefined ? undefined : await this.apiKeys.authenticate(key);
    if (!caller) {
      this.events.count(key === undefined ? 'no_key' : 'invalid_key');
      await this.failed.note(request, context.switchToHttp().getResponse<Response>());
      throw key === undefined ? new UnauthorizedError() : new InvalidApiKeyError();
    }
    setCaller(request, caller);
    Object.assign(requestContext(request).log, { organizationId: caller.organization.id, keyId: caller.keyId });
    return true;
  }
}

import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { InvalidApiKeyError, UnauthorizedError } from '../domain/errors.js';
import { requestContext } from '../http/request-context.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import { setCaller } from './caller.js';

const BEARER = /^Bearer +(\S+) *$/i;

/** Who calls: refuses a request without a valid API key (401). */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(private readonly apiKeys: ApiKeysService) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const key = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (key === undefined) throw new UnauthorizedError();
    const caller = await this.apiKeys.authenticate(key);
    if (!caller) throw new InvalidApiKeyError();
    setCaller(request, caller);
    Object.assign(requestContext(request).log, { organizationId: caller.organization.id, keyId: caller.keyId });
    return true;
  }
}

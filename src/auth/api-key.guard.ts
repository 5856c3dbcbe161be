import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ApiErrors } from '../http/error-docs.js';
import { requestContextOf } from '../http/request-context.js';
import { ClientBlockedError, InvalidTokenError, OrganizationNotLinkedError } from './auth-errors.js';
import { Authentication } from './authentication.js';

/** Refuses a call without a valid API key or access token (401), and tokens of which no caller is known (403). */
@ApiErrors(
  'unauthorized',
  'invalid_api_key',
  { title: 'The access token is invalid', error: new InvalidTokenError('has expired (exp)') },
  {
    title: 'No organization is linked to that of the access token',
    error: new OrganizationNotLinkedError('org_id', 'acme'),
  },
  { title: 'The client of the access token is blocked', error: new ClientBlockedError() },
  'failed_authentications',
  'internal_error',
  'service_unavailable',
)
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(private readonly authentication: Authentication) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const context = requestContextOf(execution);
    context.caller = await this.authentication.caller(context);
    const { keyId, organization } = context.caller;
    Object.assign(context.log, { organizationId: organization.id, keyId });
    return true;
  }
}

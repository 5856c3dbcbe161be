import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requestContextOf } from '../http/server/request-context.js';
import { OrganizationNotLinkedError, TOKEN_REFUSALS } from './auth-errors.js';
import { Authentication } from './authentication.js';

/** Refuses a call without a valid API key or access token (401), and tokens of which no caller is known (403). */
@ApiErrors(
  'unauthorized',
  'invalid_api_key',
  {
    title: 'No organization is linked to that of the access token',
    error: new OrganizationNotLinkedError('org_id', 'acme'),
  },
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
    context.caller = await this.authentication.caller(context);
    const { keyId, organization } = context.caller;
    Object.assign(context.log, { organizationId: organization.id, keyId });
    return true;
  }
}

import {
  applyDecorators,
  createParamDecorator,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import { AdminRoleRequiredError, AdminTokenError, TOKEN_REFUSALS } from '../../auth/auth-errors.js';
import { TOKEN_SCHEME } from '../../auth/auth.decorators.js';
import { Authentication } from '../../auth/authentication.js';
import { RouteNotFoundError } from '../../http/errors/http-errors.js';
import { ApiErrors, ApiId, type ErrorExample } from '../../http/errors/error-docs.js';
import { AllowsHead, Audience } from '../../http/routes/route.decorators.js';
import { requestContextOf } from '../../http/server/request-context.js';
import { UnknownKeyError, UnknownOrganizationError } from '../../organizations/organization-errors.js';
import { KEY, ORGANIZATION } from './dto/responses.dto.js';

// What the admin controllers share: their guard, decorators and errors.

export const ADMIN_TOKEN_SCHEME = 'adminToken';

/**
 * Requires `ADMIN_TOKEN`, or an access token with `OIDC_ADMIN_CLAIM`. An address that sent too many wrong ones gets 429, and the
 * correct one is always accepted.
 */
@ApiErrors(
  { title: 'The admin token is missing or invalid', error: new AdminTokenError() },
  new AdminRoleRequiredError(),
  ...TOKEN_REFUSALS,
  { title: 'Neither `ADMIN_TOKEN` nor `OIDC_ADMIN_CLAIM` is set', error: new RouteNotFoundError() },
  'failed_admin_authentications',
  'internal_error',
  'service_unavailable',
)
@Injectable()
class AdminGuard implements CanActivate {
  constructor(private readonly authentication: Authentication) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const context = requestContextOf(execution);
    const person = await this.authentication.operator(context);
    context.person = person;
    const { address, callId } = context;
    Object.assign(context.log, { admin: true, address, callId, ...(person && { sub: person.sub }) });
    return true;
  }
}

export function AdminRoutes(): ClassDecorator {
  return applyDecorators(
    ApiTags('admin'),
    ApiBearerAuth(ADMIN_TOKEN_SCHEME),
    ApiBearerAuth(TOKEN_SCHEME),
    UseGuards(AdminGuard),
    AllowsHead(),
    Audience('operators'),
  );
}

/** A parameter: who makes a change over HTTP. */
export const Operator = createParamDecorator((_data: unknown, execution) => requestContextOf(execution).actor);

export const ORGANIZATION_NOT_FOUND: ErrorExample = {
  title: 'The organization does not exist',
  error: new UnknownOrganizationError(ORGANIZATION.id),
};

export const ApiOrganizationId = (): MethodDecorator =>
  ApiId('The ID of the organization (`org_…`).', ORGANIZATION.id, ORGANIZATION_NOT_FOUND);

export const ApiKeyId = (): MethodDecorator =>
  ApiId('The ID of the key (`key_…`), not the key itself.', KEY.id, {
    title: 'The key does not exist',
    error: new UnknownKeyError(KEY.id),
  });

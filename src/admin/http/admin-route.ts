import {
  applyDecorators,
  createParamDecorator,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { ApiBearerAuth, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { FailedAuthentications } from '../../auth/failed-authentications.js';
import { Environment } from '../../config/environment.js';
import type { Actor } from '../../domain/caller.js';
import { RouteNotFoundError, UnauthorizedError } from '../../domain/errors.js';
import { bearerToken, SecretToken } from '../../http/bearer-token.js';
import { ApiErrors, type ErrorExample } from '../../http/error-docs.js';
import { AllowsHead, Audience } from '../../http/route.decorators.js';
import { requestContextOf } from '../../http/request-context.js';
import { UnknownKeyError, UnknownOrganizationError } from '../../organizations/organization-errors.js';
import { KEY, ORGANIZATION } from './dto/responses.dto.js';

// What the admin controllers share: their guard, decorators and errors.

/** The name of the admin token's scheme in the OpenAPI document. */
export const ADMIN_TOKEN_SCHEME = 'adminToken';

/** The admin token is missing or invalid. */
class AdminTokenError extends UnauthorizedError {
  constructor(sent?: string) {
    super('the header "Authorization: Bearer <ADMIN_TOKEN>"', 'the admin token', sent);
  }
}

/** Requires `ADMIN_TOKEN`. An address that sent too many wrong tokens gets 429, and the correct token is always accepted. */
@ApiErrors(
  { title: 'The admin token is missing or invalid', error: new AdminTokenError() },
  { title: '`ADMIN_TOKEN` is not set', error: new RouteNotFoundError() },
  'failed_admin_authentications',
  'internal_error',
  'service_unavailable',
)
@Injectable()
class AdminGuard implements CanActivate {
  private readonly token: SecretToken | undefined;

  constructor(
    { ADMIN_TOKEN }: Environment,
    private readonly failed: FailedAuthentications,
  ) {
    this.token = ADMIN_TOKEN === undefined ? undefined : new SecretToken(ADMIN_TOKEN);
  }

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const context = requestContextOf(execution);
    const request = execution.switchToHttp().getRequest<Request>();
    if (!this.token?.isIn(request)) {
      await this.failed.record(context, 'admin token');
      throw new AdminTokenError(bearerToken(request));
    }
    Object.assign(context.log, { admin: true, address: context.address, callId: context.callId });
    return true;
  }
}

/** What every route under `/admin` has. */
export function AdminRoutes(): ClassDecorator {
  return applyDecorators(
    ApiTags('admin'),
    ApiBearerAuth(ADMIN_TOKEN_SCHEME),
    UseGuards(AdminGuard),
    AllowsHead(),
    Audience('operators'),
  );
}

/** A parameter: who makes a change over HTTP. */
export const Operator = createParamDecorator((_data: unknown, execution): Actor => {
  const { requestId, callId, address = null } = requestContextOf(execution);
  return { kind: 'admin', requestId, callId, address };
});

/** The parameter of the routes of an organization, and their 404. */
export function ApiOrganizationId(): MethodDecorator {
  const description = 'The ID of the organization (`org_…`).';
  return applyDecorators(
    ApiParam({ name: 'id', description, schema: { type: 'string', example: ORGANIZATION.id } }),
    ApiErrors(ORGANIZATION_NOT_FOUND),
  );
}

/** The parameter of the routes of a key, and their 404. */
export function ApiKeyId(): MethodDecorator {
  const description = 'The ID of the key (`key_…`), not the key itself.';
  return applyDecorators(
    ApiParam({ name: 'id', description, schema: { type: 'string', example: KEY.id } }),
    ApiErrors({ title: 'The key does not exist', error: new UnknownKeyError(KEY.id) }),
  );
}

export const ORGANIZATION_NOT_FOUND: ErrorExample = {
  title: 'The organization does not exist',
  error: new UnknownOrganizationError(ORGANIZATION.id),
};

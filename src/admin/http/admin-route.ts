import { applyDecorators, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiBearerAuth, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import type { Actor } from '../../domain/caller.js';
import { RouteNotFoundError } from '../../domain/errors.js';
import { ApiErrors, type ErrorExample } from '../../http/error-docs.js';
import { JsonBody } from '../../http/json-body.js';
import { requestContext } from '../../http/request-context.js';
import { UnknownKeyError, UnknownOrganizationError } from '../../organizations/organization-errors.js';
import { AdminGuard, AdminTokenError } from './admin.guard.js';
import { KEY, ORGANIZATION } from './dto/responses.dto.js';

// What the admin controllers share: their decorators and errors.

/** The name of the admin token's scheme in the OpenAPI document. */
export const ADMIN_TOKEN_SCHEME = 'adminToken';

/** The guard, the body parser, which runs after the guard, and the errors of every route under `/admin`. */
export function AdminRoutes(): ClassDecorator {
  return applyDecorators(
    ApiTags('admin'),
    ApiBearerAuth(ADMIN_TOKEN_SCHEME),
    UseGuards(AdminGuard),
    UseInterceptors(JsonBody),
    ApiErrors(
      { title: 'The admin token is missing or invalid', error: new AdminTokenError() },
      'failed_admin_authentications',
      'method_not_allowed',
      'internal_error',
      'service_unavailable',
    ),
  );
}

export function ApiOrganizationId(): MethodDecorator {
  return ApiParam({
    name: 'id',
    description: 'The ID of the organization (`org_…`).',
    schema: { type: 'string', example: ORGANIZATION.id },
  });
}

export function ApiKeyId(): MethodDecorator {
  return ApiParam({
    name: 'id',
    description: 'The ID of the key (`key_…`), not the key itself.',
    schema: { type: 'string', example: KEY.id },
  });
}

export const ORGANIZATION_NOT_FOUND: ErrorExample = {
  title: 'The organization does not exist, or `ADMIN_TOKEN` is not set',
  error: new UnknownOrganizationError(ORGANIZATION.id),
};

export const KEY_NOT_FOUND: ErrorExample = {
  title: 'The key does not exist, or `ADMIN_TOKEN` is not set',
  error: new UnknownKeyError(KEY.id),
};

export const ADMIN_DISABLED: ErrorExample = { title: '`ADMIN_TOKEN` is not set', error: new RouteNotFoundError() };

/** Who makes a change over HTTP. */
export function adminActor(request: Request): Actor {
  return { kind: 'admin', requestId: requestContext(request).requestId };
}

import { applyDecorators, HttpStatus, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiBearerAuth, ApiParam, ApiTags } from '@nestjs/swagger';
import { TOO_MANY_ADMIN_FAILURES } from '../../rate-limit/limit-docs.js';
import { ApiErrors, type OwnError } from '../../http/error-docs.js';
import { JsonBody } from '../../http/json-body.js';
import { AdminGuard, AdminTokenError } from './admin.guard.js';
import { KEY, ORGANIZATION } from './dto/responses.example.js';

/** The name of the admin token's scheme in the OpenAPI document. */
export const ADMIN_TOKEN_SCHEME = 'adminToken';

const TOKEN_NEEDED: OwnError = {
  code: 'unauthorized',
  title: 'No admin token, or a wrong one',
  message: new AdminTokenError().message,
};

const BODY_TOO_LARGE: OwnError = {
  code: 'invalid_request',
  status: HttpStatus.PAYLOAD_TOO_LARGE,
  title: 'The body is too large',
  message: 'The body has more than 16384 bytes.',
  fields: { details: [{ field: 'body', message: 'The body has more than 16384 bytes.' }] },
};

const NOT_JSON = 'Send the body as uncompressed JSON in UTF-8, with Content-Type: application/json.';
const BODY_NOT_JSON: OwnError = {
  code: 'invalid_request',
  status: HttpStatus.UNSUPPORTED_MEDIA_TYPE,
  title: 'The body is not JSON',
  message: NOT_JSON,
  fields: { details: [{ field: 'body', message: NOT_JSON }] },
};

/** What every route under `/admin` has: the guard before the body is read, and the errors that any of them can have. */
export function AdminRoutes(): ClassDecorator {
  return applyDecorators(
    ApiTags('admin'),
    ApiBearerAuth(ADMIN_TOKEN_SCHEME),
    UseGuards(AdminGuard),
    UseInterceptors(JsonBody),
    ApiErrors(TOKEN_NEEDED, TOO_MANY_ADMIN_FAILURES, 'method_not_allowed', 'internal_error', 'service_unavailable'),
  );
}

/** The errors of a route that reads a body. */
export function ApiBodyErrors(): MethodDecorator & ClassDecorator {
  return ApiErrors(BODY_TOO_LARGE, BODY_NOT_JSON);
}

/** The path of the route names an organization. */
export function NamesOrganization(): MethodDecorator {
  return ApiParam({
    name: 'id',
    description: 'The id of the organization: `org_…`.',
    schema: { type: 'string', example: ORGANIZATION.id },
  });
}

/** The path of the route names a key. */
export function NamesKey(): MethodDecorator {
  return ApiParam({
    name: 'id',
    description: 'The id of the key: `key_…`, never the key itself.',
    schema: { type: 'string', example: KEY.id },
  });
}

/** A parameter or a field is wrong, as an example. */
export function invalid(field: string, message: string): OwnError {
  return {
    code: 'invalid_request',
    title: 'A parameter or a field is wrong',
    message,
    fields: { details: [{ field, message }] },
  };
}

export const NO_SUCH_ORGANIZATION: OwnError = {
  code: 'not_found',
  title: 'No such organization, or `ADMIN_TOKEN` is not set',
  message: 'There is no organization with the id or name "org_0a1b2c3d4e5f6a7b8c9d0e1f".',
};

export const NO_SUCH_KEY: OwnError = {
  code: 'not_found',
  title: 'No such key, or `ADMIN_TOKEN` is not set',
  message: 'There is no key with the id "key_5b1f6a2c9d3e4f7081a2b3c4".',
};

export const NOT_THERE: OwnError = {
  code: 'not_found',
  title: '`ADMIN_TOKEN` is not set',
  message: 'Not found. See /docs for the available endpoints.',
};

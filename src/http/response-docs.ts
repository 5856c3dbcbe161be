import { applyDecorators, HttpCode, type HttpStatus, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiResponse, getSchemaPath, type ApiResponseOptions } from '@nestjs/swagger';
import { RATE_LIMIT_HEADERS } from './limit-headers.js';

type Headers = NonNullable<ApiResponseOptions['headers']>;

const REQUEST_ID_HEADER = {
  'X-Request-Id': { description: 'The ID of the request.', schema: { type: 'string' as const } },
};

/** The headers of a successful response to an API key. */
export const API_HEADERS = { ...REQUEST_ID_HEADER, ...RATE_LIMIT_HEADERS };

/** The success status of a route, and the response with an example in the OpenAPI document. */
export function ApiResult<T extends object>(
  status: HttpStatus,
  type: Type<T>,
  description: string,
  example: T,
  headers: Headers = REQUEST_ID_HEADER,
): MethodDecorator {
  const content = { 'application/json': { schema: { $ref: getSchemaPath(type) }, example } };
  return applyDecorators(
    HttpCode(status),
    ApiExtraModels(type),
    ApiResponse({ status, description, headers, content }),
  );
}

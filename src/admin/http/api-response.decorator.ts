import { applyDecorators, HttpCode, type HttpStatus, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiResponse, getSchemaPath } from '@nestjs/swagger';

/** The status of a route that succeeds, and its description in the OpenAPI document with an example. */
export function ApiResult(status: HttpStatus, schema: Type, description: string, example: unknown): MethodDecorator {
  return applyDecorators(
    HttpCode(status),
    ApiExtraModels(schema),
    ApiResponse({
      status,
      description,
      headers: { 'X-Request-Id': { description: 'The id of the request.', schema: { type: 'string' } } },
      content: { 'application/json': { schema: { $ref: getSchemaPath(schema) }, example } },
    }),
  );
}

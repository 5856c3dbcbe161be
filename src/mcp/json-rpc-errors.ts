import { applyDecorators, HttpStatus } from '@nestjs/common';
import { ApiResponse, getSchemaPath } from '@nestjs/swagger';
import { ErrorBodyDto } from '../http/error-body.js';

/** Errors of JSON-RPC 2.0 for a body that is not one message. */
export const PARSE_ERROR = { code: -32_700, message: 'Parse error: the body is not valid JSON' };
export const INVALID_REQUEST = { code: -32_600, message: 'Invalid request: not one JSON-RPC message' };
/** The code of the SDK for a request that it refuses by its headers. */
const REFUSED = -32_000;

export interface JsonRpcError {
  code: number;
  message: string;
}

/** The body of a message that is refused by the protocol before its ID is read. */
export function jsonRpcError(error: JsonRpcError): { jsonrpc: '2.0'; error: JsonRpcError; id: null } {
  return { jsonrpc: '2.0', error, id: null };
}

const SCHEMA = {
  type: 'object' as const,
  description: 'An error of JSON-RPC 2.0.',
  required: ['jsonrpc', 'error', 'id'],
  properties: {
    jsonrpc: { type: 'string' as const, enum: ['2.0'], description: 'The version of JSON-RPC.' },
    error: {
      type: 'object' as const,
      description: 'The error.',
      required: ['code', 'message'],
      properties: {
        code: { type: 'integer' as const, description: 'A code of JSON-RPC or MCP.', example: PARSE_ERROR.code },
        message: { type: 'string' as const, description: 'A message for developers.' },
        data: { type: 'object' as const, additionalProperties: true, description: 'Details, by the code.' },
      },
    },
    id: { description: 'The ID of the message; null when it has none that can be read.' },
  },
};

export const REQUEST_ID_HEADER = {
  'X-Request-Id': { description: 'The ID of the request.', schema: { type: 'string' as const } },
};

/** Documents the responses to a body that is not one message, or whose headers the transport of MCP refuses. */
export function ApiJsonRpcErrors(): MethodDecorator {
  return applyDecorators(
    response(
      HttpStatus.BAD_REQUEST,
      'The body is not one JSON-RPC message (an error of JSON-RPC), or the query is invalid (`invalid_request`).',
      PARSE_ERROR,
      { oneOf: [SCHEMA, { $ref: getSchemaPath(ErrorBodyDto) }] },
    ),
    response(
      HttpStatus.NOT_ACCEPTABLE,
      'The client accepts JSON or server-sent events only, and the revision of the protocol requires both.',
      { code: REFUSED, message: 'Not Acceptable: Client must accept both application/json and text/event-stream' },
    ),
    response(HttpStatus.UNSUPPORTED_MEDIA_TYPE, 'The body is not sent as `application/json`.', {
      code: REFUSED,
      message: 'Unsupported Media Type: Content-Type must be application/json',
    }),
  );
}

function response(
  status: HttpStatus,
  description: string,
  error: JsonRpcError,
  schema: object = SCHEMA,
): MethodDecorator {
  const content = { 'application/json': { schema, example: jsonRpcError(error) } };
  return ApiResponse({ status, description, headers: REQUEST_ID_HEADER, content });
}

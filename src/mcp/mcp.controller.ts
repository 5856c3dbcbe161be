import { applyDecorators, Controller, HttpCode, HttpStatus, Post, Req, Res } from '@nestjs/common';
import { ApiBody, ApiHeader, ApiOkResponse, ApiOperation, ApiResponse, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresApiKey } from '../auth/guarded.decorator.js';
import { Environment } from '../config/environment.js';
import { RefusedRequestError } from '../domain/errors.js';
import { ErrorBodyDto } from '../http/error-body.js';
import { ApiErrors } from '../http/error-docs.js';
import { bodyTooLarge, readBytes } from '../http/json-body.js';
import { requestContext } from '../http/request-context.js';
import { API_HEADERS, REQUEST_ID_HEADER } from '../http/response-docs.js';
import { isNestedDeeper, NESTING_LEVELS_MAX } from '../http/validation.js';
import { McpTools } from './mcp-tools.js';

/** Messages have cursors and the client's description of itself; the proxy in deploy/nginx.conf has the same limit. */
const MESSAGE_BYTES_MAX = 64 * 1024;

const ORIGIN_NOT_ALLOWED = new RefusedRequestError(
  HttpStatus.FORBIDDEN,
  'Origin',
  'Requests from pages of this origin are not allowed. The operator can allow the origin with CORS_ORIGINS.',
);

/** Errors of JSON-RPC 2.0 for a body that is not one message. */
const PARSE_ERROR = { code: -32_700, message: 'Parse error: the body is not valid JSON' };
const INVALID_REQUEST = { code: -32_600, message: 'Invalid request: not one JSON-RPC message' };
/** The code of the SDK for a request that it refuses by its headers. */
const REFUSED = -32_000;

/** The body of a response to a message that is refused before its ID is read. */
const jsonRpcError = (error: typeof PARSE_ERROR) => ({ jsonrpc: '2.0', error, id: null });

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

/** What the service itself refuses has the envelope of its other errors. */
const OR_ENVELOPE = { oneOf: [SCHEMA, { $ref: getSchemaPath(ErrorBodyDto) }] };

/** Documents the responses to a body that is not one message, or whose headers the transport of MCP refuses. */
function ApiJsonRpcErrors(): MethodDecorator {
  return applyDecorators(
    response(
      HttpStatus.BAD_REQUEST,
      'The body is not one JSON-RPC message (an error of JSON-RPC), or the query is invalid (`invalid_request`).',
      PARSE_ERROR,
      OR_ENVELOPE,
    ),
    response(
      HttpStatus.NOT_ACCEPTABLE,
      'The client accepts JSON or server-sent events only, and the revision of the protocol requires both.',
      { code: REFUSED, message: 'Not Acceptable: Client must accept both application/json and text/event-stream' },
    ),
    response(
      HttpStatus.UNSUPPORTED_MEDIA_TYPE,
      'The body is not sent as `application/json` (an error of JSON-RPC), or is compressed (`invalid_request`).',
      { code: REFUSED, message: 'Unsupported Media Type: Content-Type must be application/json' },
      OR_ENVELOPE,
    ),
  );
}

function response(
  status: HttpStatus,
  description: string,
  error: typeof PARSE_ERROR,
  schema: object = SCHEMA,
): MethodDecorator {
  const content = { 'application/json': { schema, example: jsonRpcError(error) } };
  return ApiResponse({ status, description, headers: REQUEST_ID_HEADER, content });
}

/** The Model Context Protocol over stateless Streamable HTTP. */
@ApiTags('mcp')
@Controller('mcp')
@RequiresApiKey()
export class McpController {
  constructor(
    private readonly environment: Environment,
    private readonly tools: McpTools,
  ) {}

  @Post()
  @HttpCode(HttpStatus.OK)
  @ApiOperation({
    operationId: 'sendMcpMessage',
    summary: 'Model Context Protocol (MCP)',
    description:
      'The endpoint for AI assistants, by the Streamable HTTP transport of MCP without sessions. One JSON-RPC message per ' +
      'request, in any released revision of the protocol. Tools: `list_channel_uploads`, `get_channel_transcripts`, ' +
      '`get_video_transcript`, `search_channel_transcripts`, `get_usage`, `start_archive_job`, `get_job`; docs/mcp.md describes how to add the service to a ' +
      'client. The plan, the quota and, for tools that read from YouTube, the concurrency limits apply to each call of a tool, and their errors are results ' +
      'with `isError` whose text begins with the error code. A body that is not one JSON-RPC message gets 400 with an error ' +
      'of JSON-RPC. A page can call this operation only if `CORS_ORIGINS` has its origin, also the page of this ' +
      'documentation: its "Try it out" gets 403 otherwise.',
  })
  @ApiHeader({ name: 'MCP-Protocol-Version', required: false, description: 'The revision of the protocol.' })
  @ApiBody({
    description: `A JSON-RPC 2.0 message of at most ${MESSAGE_BYTES_MAX} bytes. Batches are not supported.`,
    schema: {
      type: 'object',
      required: ['jsonrpc', 'method'],
      properties: {
        jsonrpc: { type: 'string', enum: ['2.0'] },
        id: { oneOf: [{ type: 'string' }, { type: 'integer' }] },
        method: { type: 'string', example: 'tools/call' },
        params: { type: 'object' },
      },
      example: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_usage', arguments: {} } },
    },
  })
  @ApiOkResponse({
    description:
      'The JSON-RPC response; as server-sent events when the client accepts them and progress is reported before it.',
    headers: API_HEADERS,
    content: {
      'application/json': { schema: { type: 'object' } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  })
  @ApiResponse({ status: HttpStatus.ACCEPTED, description: 'The message is a notification, which has no response.' })
  @ApiJsonRpcErrors()
  @ApiErrors(
    { title: 'The page that sends the request is not allowed to', error: ORIGIN_NOT_ALLOWED },
    { title: 'The message is too large', error: bodyTooLarge(MESSAGE_BYTES_MAX) },
    'unauthorized',
    'invalid_api_key',
    'method_not_allowed',
    'rate_limited',
    'failed_authentications',
    'internal_error',
    'service_unavailable',
  )
  async receive(@Req() request: Request, @Res() response: Response): Promise<void> {
    if (!this.isAllowedOrigin(request.headers.origin)) throw ORIGIN_NOT_ALLOWED;
    const message = parseMessage(await readBytes(request, response, MESSAGE_BYTES_MAX));
    if (message === undefined) response.status(HttpStatus.BAD_REQUEST).json(jsonRpcError(PARSE_ERROR));
    // A batch would be one call for the rate limit, and the SDK recurses into every field. It refuses what else is no message.
    else if (Array.isArray(message) || isNestedDeeper(message, NESTING_LEVELS_MAX))
      response.status(HttpStatus.BAD_REQUEST).json(jsonRpcError(INVALID_REQUEST));
    else await this.tools.serve(request, response, message, requestContext(request));
  }

  /** Only browsers send an origin. A page could otherwise reach a service in its visitor's network by DNS rebinding. */
  private isAllowedOrigin(origin: string | undefined): boolean {
    const allowed = this.environment.CORS_ORIGINS ?? [];
    return origin === undefined || allowed.includes('*') || allowed.includes(origin);
  }
}

/** @returns undefined for a body that is not JSON in UTF-8 */
function parseMessage(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

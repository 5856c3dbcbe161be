import { Controller, HttpCode, HttpStatus, Post, Req, Res } from '@nestjs/common';
import { ApiBody, ApiHeader, ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresApiKey } from '../auth/guarded.decorator.js';
import { Environment } from '../config/environment.js';
import { RefusedRequestError } from '../domain/errors.js';
import { ApiErrors } from '../http/error-docs.js';
import { bodyTooLarge, readBytes } from '../http/json-body.js';
import { RATE_LIMIT_HEADERS } from '../http/limit-headers.js';
import { requestContext } from '../http/request-context.js';
import { isNestedDeeper, NESTING_LEVELS_MAX } from '../http/validation.js';
import {
  ApiJsonRpcErrors,
  INVALID_REQUEST,
  jsonRpcError,
  PARSE_ERROR,
  REQUEST_ID_HEADER,
  type JsonRpcError,
} from './json-rpc-errors.js';
import { ToolServices } from './tools/tool.js';

/** Messages have cursors and the client's description of itself; the proxy in deploy/nginx.conf has the same limit. */
const MESSAGE_BYTES_MAX = 64 * 1024;

const METHODS = new Set([
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'server/discover',
  'notifications/initialized',
  'notifications/cancelled',
]);

const ORIGIN_NOT_ALLOWED = new RefusedRequestError(
  HttpStatus.FORBIDDEN,
  'Origin',
  'Requests from pages of this origin are not allowed. The operator can allow the origin with CORS_ORIGINS.',
);

/** The Model Context Protocol over stateless Streamable HTTP. The SDK and the tools are loaded with the first message. */
@ApiTags('mcp')
@Controller('mcp')
@RequiresApiKey()
export class McpController {
  constructor(
    private readonly environment: Environment,
    private readonly services: ToolServices,
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
    headers: { ...REQUEST_ID_HEADER, ...RATE_LIMIT_HEADERS },
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
    const context = requestContext(request);
    const { message, error } = parseMessage(await readBytes(request, response, MESSAGE_BYTES_MAX));
    if (error) {
      response.status(HttpStatus.BAD_REQUEST).json(jsonRpcError(error));
      return;
    }
    const method = 'method' in message ? message.method : undefined;
    context.log['rpcMethod'] = typeof method === 'string' && METHODS.has(method) ? method : 'other';
    const { serveMessage } = await import('./mcp-endpoint.js');
    await serveMessage(request, response, message, context, this.services);
  }

  /** Only browsers send an origin. A page could otherwise reach a service in its visitor's network by DNS rebinding. */
  private isAllowedOrigin(origin: string | undefined): boolean {
    const allowed = this.environment.CORS_ORIGINS ?? [];
    return origin === undefined || allowed.includes('*') || allowed.includes(origin);
  }
}

type ParsedMessage = { message: object; error?: undefined } | { message?: undefined; error: JsonRpcError };

function parseMessage(body: Buffer): ParsedMessage {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return { error: PARSE_ERROR };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { error: INVALID_REQUEST };
  return isNestedDeeper(value, NESTING_LEVELS_MAX) ? { error: INVALID_REQUEST } : { message: value };
}

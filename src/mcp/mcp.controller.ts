import { Body, Controller, HttpCode, HttpStatus, Post, Req, Res } from '@nestjs/common';
import { ApiBody, ApiHeader, ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresApiKey } from '../auth/auth.decorators.js';
import { Environment } from '../config/environment.js';
import { RefusedRequestError } from '../http/errors/http-errors.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { contentOf } from '../http/routes/response-docs.js';
import { AnyQuery, BodyBytesMax, Reads } from '../http/routes/route.decorators.js';
import { McpTools } from './mcp-tools.js';

/** Messages have cursors and the client's description of itself. */
const MESSAGE_BYTES_MAX = 64 * 1024;

const ORIGIN_NOT_ALLOWED = new RefusedRequestError(
  HttpStatus.FORBIDDEN,
  'Origin',
  'Requests from pages of this origin are not allowed. The operator can allow the origin with CORS_ORIGINS.',
);

/** The SDK refuses what is no message, and headers that its transport does not accept, with an error of JSON-RPC. */
const JSON_OBJECT = { 'application/json': { schema: { type: 'object' as const } } };

/** The Model Context Protocol over stateless Streamable HTTP. */
@ApiTags('mcp')
@Controller('mcp')
@RequiresApiKey({ limitsRate: false })
// Of messages that call no tool, and of an address that keeps failing to authenticate. The limit of a key is a result, with the same headers.
@ApiErrors('rate_limited')
@Reads()
@BodyBytesMax(MESSAGE_BYTES_MAX)
@AnyQuery()
export class McpController {
  constructor(
    private readonly environment: Environment,
    private readonly tools: McpTools,
  ) {}

  @Post()
  @HttpCode(HttpStatus.OK)
  @ApiOperation({
    summary: 'Model Context Protocol (MCP)',
    description:
      'The endpoint for AI assistants, by the Streamable HTTP transport of MCP without sessions. One JSON-RPC message per ' +
      'request, in any released revision of the protocol; `tools/list` describes the tools. The plan, the quota, the rate limit and, for tools that read from YouTube, the concurrency limits apply to each call of a tool, and their errors are results ' +
      'with `isError` whose text begins with the error code. Of other messages the keys of an organization may send ten times as many per minute (429). A JSON object that is no message of JSON-RPC gets 400 with an error ' +
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
    description: 'The JSON-RPC response; as server-sent events (`text/event-stream`) for the revisions of 2025.',
    ...contentOf(JSON_OBJECT['application/json'], { 'text/event-stream': { schema: { type: 'string' } } }),
  })
  @ApiResponse({ status: HttpStatus.ACCEPTED, description: 'The message is a notification, which has no response.' })
  @ApiResponse({
    status: HttpStatus.BAD_REQUEST,
    description: 'The body is not one JSON-RPC message (an error of JSON-RPC), or not JSON (`invalid_request`).',
    content: JSON_OBJECT,
  })
  @ApiResponse({
    status: HttpStatus.NOT_ACCEPTABLE,
    description: 'The revision of the protocol requires that the client accepts JSON and server-sent events.',
    content: JSON_OBJECT,
  })
  @ApiErrors({ title: 'The page that sends the request is not allowed to', error: ORIGIN_NOT_ALLOWED })
  async sendMcpMessage(@Body() message: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
    if (!this.isAllowedOrigin(request.headers.origin)) throw ORIGIN_NOT_ALLOWED;
    await this.tools.serve(request, response, message);
  }

  /** Only browsers send an origin. A page could otherwise reach a service in its visitor's network by DNS rebinding. */
  private isAllowedOrigin(origin: string | undefined): boolean {
    const allowed = this.environment.CORS_ORIGINS ?? [];
    return origin === undefined || allowed.includes('*') || allowed.includes(origin);
  }
}

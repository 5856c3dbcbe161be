import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import {
  ApiExcludeEndpoint,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiTags,
  getSchemaPath,
} from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/guarded.decorator.js';
import { ApiErrors } from '../http/error-docs.js';
import { QUOTA_HEADERS, RATE_LIMIT_HEADERS, setQuotaHeaders } from '../http/limit-headers.js';
import { requestContext } from '../http/request-context.js';
import { responseEnd } from '../http/response-end.js';
import { TranscriptsService } from '../transcripts/transcripts.service.js';
import { TRANSCRIPTS_EXAMPLE, TRANSCRIPTS_NDJSON_EXAMPLE, TranscriptsDto } from './dto/transcripts-response.dto.js';
import { TranscriptsQueryDto } from './dto/transcripts-query.dto.js';

const NDJSON = 'application/x-ndjson';

/** Turns an HTTP request into a call of the service, and its events into the response. */
@ApiTags('channels')
@Controller('channels')
@RequiresFeature('channel_transcripts')
export class ChannelsController {
  constructor(private readonly transcripts: TranscriptsService) {}

  @Get(':id/transcripts')
  @ApiOperation({
    operationId: 'getChannelTranscripts',
    summary: "The transcripts of a channel's newest uploads",
    description:
      'Returns a transcript and a status for each of the newest uploads of a YouTube channel (videos, Shorts and past live ' +
      'streams). The failure of one video never fails the call. Requires the Pro plan. Each transcript that is successful ' +
      "and not cached counts against the organization's monthly quota. The call first reserves quota for every video that " +
      'it may have to fetch, and is refused with 402 when the quota is too small. Videos that have not arrived by the ' +
      'deadline of the call are entries with `upstream_timeout`; the others are returned. Results are not paged, and ' +
      'unknown parameters are refused.',
  })
  @ApiParam({
    name: 'id',
    description:
      'A handle (`@name`, or without the `@`), a channel ID (`UC` and 22 characters) or the URL of a channel ' +
      '(`https://www.youtube.com/@name`, `/channel/UC…`, `/c/name`, `/user/name`, `/name`), percent-encoded or raw.',
    schema: { type: 'string', maxLength: 2048, example: '@harbourlight' },
  })
  @ApiExtraModels(TranscriptsDto)
  @ApiOkResponse({
    content: {
      'application/json': { schema: { $ref: getSchemaPath(TranscriptsDto) }, example: TRANSCRIPTS_EXAMPLE },
      [NDJSON]: {
        schema: {
          type: 'string',
          description:
            'One JSON object per line, with a `type`: first `channel` with the field `channel`, then a `result` with the field ' +
            '`result` as each video finishes, and last `summary` with the field `summary`. The fields are those of the JSON response.',
        },
        example: TRANSCRIPTS_NDJSON_EXAMPLE,
      },
    },
    description:
      'One entry for each upload. JSON is streamed newest first; NDJSON (`Accept: application/x-ndjson`) in the order in ' +
      'which the videos finish.',
    headers: {
      'X-Request-Id': { description: 'The ID of the request.', schema: { type: 'string' } },
      Vary: {
        description:
          '`Accept-Encoding, Accept`: the body is compressed for clients that accept gzip, and NDJSON for clients that ' +
          'accept it.',
        schema: { type: 'string' },
      },
      ...RATE_LIMIT_HEADERS,
      ...QUOTA_HEADERS,
    },
  })
  @ApiErrors(
    'invalid_request',
    'unauthorized',
    'invalid_api_key',
    'plan_limit_exceeded',
    'feature_not_in_plan',
    'channel_not_found',
    'method_not_allowed',
    'rate_limited',
    'concurrency_limited',
    'failed_authentications',
    'internal_error',
    'upstream_failure',
    'upstream_blocked',
    'service_unavailable',
    'at_capacity',
    'upstream_timeout',
  )
  async list(
    @Param('id') id: string,
    @Query() query: TranscriptsQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { caller, requestId, startedAtMs, log } = requestContext(request);
    const plan = await this.transcripts.prepare(
      { reference: id, ...query },
      { organizationId: caller.organization.id, keyId: caller.keyId, requestId },
      { startedAtMs, responseEnd: responseEnd(response) },
    );
    log['channelId'] = plan.channel.id;
    const encoding = request.acceptsEncodings('gzip', 'identity') === 'gzip' ? 'gzip' : 'identity';
    setQuotaHeaders(response, plan.quota);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    const streamsLines = request.accepts(['application/json', NDJSON]) === NDJSON;
    response.setHeader('Content-Type', `${streamsLines ? NDJSON : 'application/json'}; charset=utf-8`);
    const body = this.transcripts.respond(plan, streamsLines ? 'ndjson' : 'json', encoding);
    log['counts'] = body.summary;
    await body.write(response);
  }

  /** The same for a channel URL with unencoded slashes, which some gateways decode. */
  @Get('*id/transcripts')
  @ApiExcludeEndpoint()
  listByRawUrl(
    @Param('id') segments: string[],
    @Query() query: TranscriptsQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.list(segments.join('/'), query, request, response);
  }
}

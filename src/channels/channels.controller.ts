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
import { SERVICE_BUSY, TOO_MANY_AT_ONCE, TOO_MANY_FAILURES } from '../rate-limit/limit-docs.js';
import { Environment } from '../config/environment.js';
import { ApiErrors } from '../http/error-docs.js';
import { QUOTA_HEADERS, RATE_LIMIT_HEADERS, setQuotaHeaders } from '../http/limit-headers.js';
import { requestContext } from '../http/request-context.js';
import { onResponseEnd } from '../http/response-end.js';
import { Call } from '../transcripts/call.js';
import { TranscriptsService } from '../transcripts/transcripts.service.js';
import { RESPONSE_EXAMPLE, NDJSON_EXAMPLE } from './dto/transcripts-response.example.js';
import { TranscriptsDto } from './dto/transcripts-response.dto.js';
import { writeResponse } from '../transcripts/response/response-writer.js';
import { serializeJson, serializeNdjson } from '../transcripts/response/serialization.js';
import { TranscriptsQueryDto } from './dto/transcripts-query.dto.js';

const NDJSON = 'application/x-ndjson';

/** The one operation: turns HTTP into a call of the service and its events into a response. */
@ApiTags('channels')
@Controller('channels')
@RequiresFeature('channel_transcripts')
export class ChannelsController {
  constructor(
    private readonly transcripts: TranscriptsService,
    private readonly environment: Environment,
  ) {}

  @Get(':id/transcripts')
  @ApiOperation({
    operationId: 'getChannelTranscripts',
    summary: "The transcripts of a channel's newest uploads",
    description:
      'Takes the newest uploads of a YouTube channel (videos, Shorts and past live streams) and returns a transcript for ' +
      "each, with a status of its own: one video's failure never fails the call. Costs one count of the organization's " +
      'monthly quota for each transcript that is successful and not cached; needs the Pro plan. Before anything is ' +
      'fetched the call reserves what it could cost at most, or is refused with 402. A call has a deadline: what has not ' +
      'arrived by then is an entry with `upstream_timeout`, what arrived is kept. There is no cursor, page or offset, and ' +
      'a parameter that is not named here is refused.',
  })
  @ApiParam({
    name: 'id',
    description:
      'The channel: a handle (`@name`, or without the `@`), a channel ID (`UC` and 22 characters) or the URL of a channel ' +
      '(`https://www.youtube.com/@name`, `/channel/UC…`, `/c/name`, `/user/name`, `/name`), percent-encoded or raw.',
    schema: { type: 'string', maxLength: 2048, example: '@harbourlight' },
  })
  @ApiExtraModels(TranscriptsDto)
  @ApiOkResponse({
    content: {
      'application/json': { schema: { $ref: getSchemaPath(TranscriptsDto) }, example: RESPONSE_EXAMPLE },
      [NDJSON]: {
        schema: {
          type: 'string',
          description:
            'A line of JSON for each event, told apart by `type`: `channel` with the field `channel`, `result` with `result` ' +
            'as each video is finished, and last `summary` with `summary`. The fields are those of the JSON answer.',
        },
        example: NDJSON_EXAMPLE,
      },
    },
    description:
      'One entry for each upload, newest first. The body is streamed in this order; as lines ' +
      '(`Accept: application/x-ndjson`) in the order in which the videos are finished.',
    headers: {
      'X-Request-Id': { description: 'The id of the request.', schema: { type: 'string' } },
      Vary: {
        description:
          '`Accept-Encoding, Accept`: the body is compressed for callers that accept gzip, and comes as lines to those ' +
          'that ask for them.',
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
    TOO_MANY_AT_ONCE,
    TOO_MANY_FAILURES,
    'internal_error',
    'upstream_failure',
    'upstream_blocked',
    'service_unavailable',
    SERVICE_BUSY,
    'upstream_timeout',
  )
  async list(
    @Param('id') id: string,
    @Query() query: TranscriptsQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { caller, requestId, startedAtMs, log } = requestContext(request);
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, startedAtMs);
    onResponseEnd(response, () => call.disconnect());
    const plan = await this.transcripts.prepare(
      {
        reference: id,
        limit: query.limit,
        languages: query.languages ?? [],
        organizationId: caller.organization.id,
        keyId: caller.keyId,
        requestId,
      },
      call,
    );
    log['channelId'] = plan.channel.id;
    const encoding = request.acceptsEncodings('gzip', 'identity') === 'gzip' ? 'gzip' : 'identity';
    const delivery = this.transcripts.deliver(plan, call, encoding === 'gzip' ? 'deflated' : 'json');
    log['counts'] = delivery.summary;
    setQuotaHeaders(response, plan.quota);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    const lines = request.accepts(['application/json', NDJSON]) === NDJSON;
    response.setHeader('Content-Type', `${lines ? NDJSON : 'application/json'}; charset=utf-8`);
    const pieces = lines
      ? serializeNdjson(delivery.events('as-finished'))
      : serializeJson(delivery.events('newest-first'));
    await writeResponse(response, pieces, encoding);
  }

  /** A URL whose slashes came raw, because a gateway decoded them or nobody encoded them. */
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

import { Controller, Get, HttpStatus, Param, Query, Req, Res } from '@nestjs/common';
import { ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { AllowsHead, RawUrlId } from '../http/routes/route.decorators.js';
import { setListAgeHeader, TranscriptsResponse } from '../transcripts/response/transcripts-response.js';
import { ChannelUploads } from '../transcripts/sources/channel-uploads.js';
import {
  ApiTranscripts,
  LIST_AGE_HEADERS,
  SOURCE_ERRORS,
  TRANSCRIPTS_EXAMPLE,
} from '../transcripts/dto/api-transcripts.js';
import { TranscriptsQueryDto, UploadsQueryDto } from '../transcripts/dto/transcripts-query.dto.js';
import {
  ChannelUploadsDto,
  toUploadsDto,
  UPLOADS_EXAMPLE,
  UPLOADS_RATE_LIMIT,
} from '../transcripts/dto/lists-response.dto.js';
import { TranscriptsDto } from '../transcripts/dto/transcripts-response.dto.js';

const CHANNEL_PARAMETER = {
  name: 'id',
  description:
    'A handle (`@name`, or without the `@`), a channel ID (`UC` and 22 characters) or the URL of a channel ' +
    '(`https://www.youtube.com/@name`, `/channel/UC…`, `/c/name`, `/user/name`, `/name`), percent-encoded or raw.',
  schema: { type: 'string' as const, maxLength: 2048, example: '@harbourlight' },
};

@ApiTags('channels')
@Controller('channels')
export class ChannelsController {
  constructor(
    private readonly uploads: ChannelUploads,
    private readonly transcripts: TranscriptsResponse,
  ) {}

  @Get(':id/transcripts')
  @RawUrlId('channel')
  @RequiresFeature('channel_transcripts')
  @ApiOperation({
    summary: "The transcripts of a channel's newest uploads",
    description:
      'Returns a transcript and a status for each of the newest uploads of a YouTube channel (videos, Shorts and past live ' +
      'streams). The failure of one video never fails the call. Requires the Pro plan. Each transcript that is successful ' +
      "and not cached counts against the organization's monthly quota. The call first reserves quota for every video that " +
      'it may have to fetch, and is refused with 402 when the quota is too small. Videos that have not arrived by the ' +
      'deadline of the call are entries with `upstream_timeout`; the others are returned. Results are not paged, and ' +
      'unknown parameters are refused.',
  })
  @ApiParam(CHANNEL_PARAMETER)
  @ApiTranscripts({ type: TranscriptsDto, example: TRANSCRIPTS_EXAMPLE, order: 'newest first', source: 'channel' })
  getChannelTranscripts(
    @Param('id') id: string,
    @Query() query: TranscriptsQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.transcripts.send({ source: this.uploads.source(id, query), ...query }, request, response);
  }

  @Get(':id/uploads')
  @AllowsHead()
  @RawUrlId('channel')
  @RequiresFeature('channel_uploads', { countedAs: UPLOADS_RATE_LIMIT })
  @ApiOperation({
    summary: "A channel's newest uploads, without transcripts",
    description:
      'Lists the newest uploads of a YouTube channel with the metadata of the list, on every plan. It costs no quota and ' +
      'has a rate limit of its own: as many requests per minute as the other operations together, counted separately.',
  })
  @ApiParam(CHANNEL_PARAMETER)
  @ApiResult(HttpStatus.OK, ChannelUploadsDto, 'The newest uploads, newest first.', UPLOADS_EXAMPLE, LIST_AGE_HEADERS)
  @ApiErrors(...SOURCE_ERRORS.channel)
  async listChannelUploads(
    @Param('id') id: string,
    @Query() query: UploadsQueryDto,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ChannelUploadsDto> {
    const context = requestContext(request);
    const listed = await this.uploads.listWithinDeadline(id, query, context);
    context.log['channelId'] = listed.channel.id;
    setListAgeHeader(response, listed);
    return toUploadsDto(listed);
  }
}

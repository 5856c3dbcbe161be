import { Body, Controller, Get, HttpCode, HttpStatus, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { ApiTranscripts, ENTRY_HEADERS, VIDEO_EXAMPLE, VIDEOS_EXAMPLE } from '../transcripts/dto/api-transcripts.js';
import { EntryDto, VideoTranscriptsDto } from '../transcripts/dto/transcripts-response.dto.js';
import { VideoFailedError, VideoNotFoundError } from '../domain/errors.js';
import { VIDEO_FAILURE_CODES, type VideoFailureCode } from '../domain/transcript.js';
import { parseVideoList, parseVideoReference } from '../domain/references/video-reference.js';
import { ApiErrors, type ErrorExample } from '../http/errors/error-docs.js';
import { contentOf, refTo } from '../http/routes/response-docs.js';
import { RawUrlId, Reads } from '../http/routes/route.decorators.js';
import { ENTRY_MEDIA_TYPES, TranscriptsResponse } from '../transcripts/response/transcripts-response.js';
import { givenVideos } from '../transcripts/sources/video-list.js';
import { entryError } from '../transcripts/delivery/transcript-events.js';
import { VideoQueryDto, VideosBodyDto } from './dto/videos-request.dto.js';

const textContent = (description: string, example: string) =>
  ({ schema: { type: 'string', description }, example }) as const;

function failureExample(code: VideoFailureCode): ErrorExample {
  const error = new VideoFailedError(entryError({ code }), VIDEO_EXAMPLE.metadata.captionTracks);
  return { title: error.message.replace(/\.$/, ''), error };
}

/** The transcripts of videos that the caller names. */
@ApiTags('videos')
@Controller()
export class VideosController {
  constructor(private readonly transcripts: TranscriptsResponse) {}

  @Get('videos/:id/transcript')
  @RawUrlId('page')
  @RequiresFeature('video_transcripts')
  @ApiOperation({
    summary: 'The transcript of one video',
    description:
      'Returns the entry of one video, on every plan. A transcript that is successful and not cached counts against the ' +
      'monthly quota; the request is refused with 402 when none remains. A video without a transcript is an error: 404 with the ' +
      'code of its entry, 409 while it is live or has not started, 502, 503 or 504 when YouTube could not be read.',
  })
  @ApiParam({
    name: 'id',
    description:
      'The ID of a video (11 characters) or its URL (`https://www.youtube.com/watch?v=…`, `https://youtu.be/…`, `/shorts/…`, ' +
      '`/live/…`, `/embed/…`), percent-encoded or raw.',
    schema: { type: 'string', maxLength: 2048, example: 'hl-dinghy__' },
  })
  @ApiOkResponse({
    description:
      'The transcript, in the format of `format` or `Accept`. In JSON it is the entry of the video; `ok` is always true. The other ' +
      'formats are `text/plain`, `application/x-subrip`, `text/vtt` and `text/markdown`.',
    ...contentOf(
      { schema: refTo(EntryDto), example: VIDEO_EXAMPLE },
      {
        [ENTRY_MEDIA_TYPES.text]: textContent(
          'One line per segment.',
          'Good morning from the slip below the lighthouse.\nThis is the Marigold, a dinghy built here in 1962.\n',
        ),
        [ENTRY_MEDIA_TYPES.srt]: textContent(
          'SubRip subtitles.',
          '1\n00:00:00,240 --> 00:00:03,440\nGood morning from the slip below the lighthouse.\n',
        ),
        [ENTRY_MEDIA_TYPES.vtt]: textContent(
          'WebVTT subtitles.',
          'WEBVTT\n\n00:00:00.240 --> 00:00:03.440\nGood morning from the slip below the lighthouse.\n',
        ),
        [ENTRY_MEDIA_TYPES.markdown]: textContent(
          'A Markdown document.',
          '# We rebuilt a 1962 dinghy from the keel up\n\n<https://www.youtube.com/watch?v=hl-dinghy__> · 10:12\n',
        ),
      },
    ),
    headers: ENTRY_HEADERS,
  })
  @ApiErrors('plan_limit_exceeded', 'key_limit_exceeded', 'video_not_found', ...VIDEO_FAILURE_CODES.map(failureExample))
  getVideoTranscript(
    @Param('id') id: string,
    @Query() { format, ...texts }: VideoQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const videoId = parseVideoReference(id);
    if (videoId === undefined) throw new VideoNotFoundError();
    const source = givenVideos([videoId], videoId);
    return this.transcripts.sendEntry({ source, ...texts }, request, response, format);
  }

  @Post('transcripts')
  @HttpCode(HttpStatus.OK)
  @Reads()
  @RequiresFeature('bulk_transcripts')
  @ApiOperation({
    summary: 'The transcripts of a list of videos',
    description:
      'Returns a transcript and a status for each of up to 100 videos, in the order of the request. Requires the Pro plan. ' +
      'Quota, cache, limits, deadline and entries are those of `GET /channels/{id}/transcripts`.',
  })
  @ApiTranscripts({
    type: VideoTranscriptsDto,
    example: VIDEOS_EXAMPLE,
    order: 'in the order of the request',
    source: 'videos',
  })
  getVideoTranscripts(
    @Body() { videos, ...texts }: VideosBodyDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.transcripts.send({ source: givenVideos(parseVideoList(videos)), ...texts }, request, response);
  }
}

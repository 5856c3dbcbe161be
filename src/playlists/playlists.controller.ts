import { Controller, Get, HttpStatus, Param, Query, Req, Res } from '@nestjs/common';
import { ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import {
  ApiTranscripts,
  LIST_AGE_HEADERS,
  PLAYLIST_EXAMPLE,
  SOURCE_ERRORS,
} from '../transcripts/dto/api-transcripts.js';
import {
  PLAYLIST_VIDEOS_EXAMPLE,
  PlaylistVideosDto,
  toPlaylistVideosDto,
  UPLOADS_RATE_LIMIT,
} from '../transcripts/dto/lists-response.dto.js';
import { PlaylistQueryDto, PlaylistVideosQueryDto } from '../transcripts/dto/transcripts-query.dto.js';
import { PlaylistTranscriptsDto } from '../transcripts/dto/transcripts-response.dto.js';
import { AllowsHead, RawUrlId } from '../http/routes/route.decorators.js';
import { setListAgeHeader, TranscriptsResponse } from '../transcripts/response/transcripts-response.js';
import { PlaylistSource } from '../transcripts/sources/playlist-source.js';

const PLAYLIST_PARAMETER = {
  name: 'id',
  description:
    'The ID of a playlist (`PL…`, `UU…`, `OLAK5uy_…`) or a URL with the parameter `list`, percent-encoded or raw.',
  schema: { type: 'string' as const, maxLength: 2048, example: 'PLharbourlight-boats' },
};

@ApiTags('playlists')
@Controller('playlists')
export class PlaylistsController {
  constructor(
    private readonly playlists: PlaylistSource,
    private readonly transcripts: TranscriptsResponse,
  ) {}

  @Get(':id/transcripts')
  @RawUrlId('page')
  @RequiresFeature('bulk_transcripts')
  @ApiOperation({
    summary: 'The transcripts of a playlist',
    description:
      'Returns a transcript and a status for each of the first videos of a public or unlisted playlist, in its order; ' +
      'deleted and private videos are failed entries. Requires the Pro plan. Quota, cache, limits, deadline and entries are ' +
      'those of `GET /channels/{id}/transcripts`. A mix (`RD…`), watch later and liked videos have no list that can be read: 400.',
  })
  @ApiParam(PLAYLIST_PARAMETER)
  @ApiTranscripts({
    type: PlaylistTranscriptsDto,
    example: PLAYLIST_EXAMPLE,
    order: "in the playlist's order",
    source: 'playlist',
  })
  getPlaylistTranscripts(
    @Param('id') id: string,
    @Query() query: PlaylistQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.transcripts.send({ source: this.playlists.source(id, query), ...query }, request, response);
  }

  @Get(':id/videos')
  @AllowsHead()
  @RawUrlId('page')
  @RequiresFeature('channel_uploads', { countedAs: UPLOADS_RATE_LIMIT })
  @ApiOperation({
    summary: 'The videos of a playlist, without transcripts',
    description:
      'Lists the first videos of a public or unlisted playlist, in its order, with the metadata of the list, on every plan. It costs no ' +
      'quota and shares the rate limit of `GET /channels/{id}/uploads`.',
  })
  @ApiParam(PLAYLIST_PARAMETER)
  @ApiResult(
    HttpStatus.OK,
    PlaylistVideosDto,
    "The first videos, in the playlist's order.",
    PLAYLIST_VIDEOS_EXAMPLE,
    LIST_AGE_HEADERS,
  )
  @ApiErrors(...SOURCE_ERRORS.playlist)
  async listPlaylistVideos(
    @Param('id') id: string,
    @Query() query: PlaylistVideosQueryDto,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<PlaylistVideosDto> {
    const context = requestContext(request);
    const listed = await this.playlists.listWithinDeadline(id, query, context);
    context.log['playlistId'] = listed.playlist.id;
    setListAgeHeader(response, listed);
    return toPlaylistVideosDto(listed);
  }
}

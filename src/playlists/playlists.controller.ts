import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import { ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { ApiTranscripts, PLAYLIST_EXAMPLE } from '../transcripts/dto/api-transcripts.js';
import { PlaylistQueryDto } from '../transcripts/dto/transcripts-query.dto.js';
import { PlaylistTranscriptsDto } from '../transcripts/dto/transcripts-response.dto.js';
import { RawUrlId } from '../http/routes/route.decorators.js';
import { TranscriptsResponse } from '../transcripts/response/transcripts-response.js';
import { PlaylistSource } from '../transcripts/sources/playlist-source.js';

/** The transcripts of a playlist. */
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
  @ApiParam({
    name: 'id',
    description:
      'The ID of a playlist (`PL…`, `UU…`, `OLAK5uy_…`) or a URL with the parameter `list`, percent-encoded or raw.',
    schema: { type: 'string', maxLength: 2048, example: 'PLharbourlight-boats' },
  })
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
}

import { Controller, Delete, Get, HttpCode, HttpStatus, Param, Query, Req, Res } from '@nestjs/common';
import { ApiNoContentResponse, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresApiKey, RequiresFeature } from '../auth/auth.decorators.js';
import { invalidField } from '../domain/errors.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors, ApiId } from '../http/errors/error-docs.js';
import { ApiResult, contentOf, refTo } from '../http/routes/response-docs.js';
import { AllowsHead } from '../http/routes/route.decorators.js';
import { requestContext } from '../http/server/request-context.js';
import { NDJSON, requireDocumentsAccepted, ResponseWriter } from '../transcripts/response/response-writer.js';
import { LibraryChannelQueryDto, LibrarySearchQueryDto, LibraryVideosQueryDto } from './dto/library-request.dto.js';
import {
  DeletedVideosDto,
  LIBRARY_LINES_EXAMPLE,
  LIBRARY_VIDEOS_EXAMPLE,
  LibraryVideosDto,
  SEARCH_EXAMPLE,
  SearchResultsDto,
} from './dto/library-response.dto.js';
import { LibraryService, NotInLibraryError } from './library.service.js';

/** What the organization keeps. Only the search needs a plan, so that a customer who changes the plan keeps the access. */
@ApiTags('library')
@Controller('library')
export class LibraryController {
  constructor(
    private readonly library: LibraryService,
    private readonly writer: ResponseWriter,
  ) {}

  @Get('search')
  @AllowsHead()
  @RequiresFeature('library')
  @ApiOperation({
    summary: 'Search the library',
    description:
      'Finds passages of about 30 seconds in the transcripts that jobs and subscriptions of the organization keep (`keep`), from the moment ' +
      'on in which an entry is final. Requires the Pro plan, and costs no quota.',
  })
  @ApiResult(HttpStatus.OK, SearchResultsDto, 'A page of passages.', SEARCH_EXAMPLE)
  @ApiErrors(invalidField('q', 'q must be a text of 1 to 200 characters.'), new UnknownCursorError('x'))
  searchLibrary(@Query() query: LibrarySearchQueryDto, @Req() request: Request): Promise<SearchResultsDto> {
    return this.library.search(requestContext(request).caller, query);
  }

  @Get('videos')
  @AllowsHead()
  @RequiresApiKey({ limitsConcurrency: true })
  @ApiOperation({
    summary: 'List or export the library',
    description:
      'Lists the videos whose transcripts are kept, newest first, without their texts, on every plan. `as=documents` with ' +
      '`Accept: application/x-ndjson` exports all their texts, for a vector store. `GET /videos/{id}/transcript` and ' +
      '`POST /transcripts` return the texts too, which cost nothing.',
  })
  @ApiOkResponse({
    description: 'A page of videos, newest first, or as NDJSON (`Accept: application/x-ndjson`) the documents of all.',
    ...contentOf(
      { schema: refTo(LibraryVideosDto), example: LIBRARY_VIDEOS_EXAMPLE },
      {
        [NDJSON]: {
          schema: {
            type: 'string',
            description:
              'With `as=documents`: a `Document` on each line. The last one of a video has its `cursor`: request `after` with it to go on ' +
              'behind that video. A language in which several texts of a video are kept comes once.',
          },
          example: LIBRARY_LINES_EXAMPLE,
        },
      },
    ),
  })
  @ApiErrors(
    new UnknownCursorError('x'),
    invalidField('as', 'as=documents requires the header Accept: application/x-ndjson.'),
  )
  async listLibraryVideos(
    @Query() query: LibraryVideosQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { id } = requestContext(request).caller.organization;
    const isExport = query.as !== undefined;
    if (isExport) requireDocumentsAccepted(request);
    else if (query.chunkSeconds !== undefined)
      throw invalidField('chunkSeconds', 'chunkSeconds requires as=documents.');
    const chunks = isExport
      ? await this.library.documents(id, query)
      : [JSON.stringify(await this.library.videos(id, query))];
    const type = isExport ? NDJSON : 'application/json';
    await this.writer.send(request, response, type, request.method === 'HEAD' ? [] : chunks);
  }

  @Delete('videos/:id')
  @HttpCode(HttpStatus.NO_CONTENT)
  @RequiresApiKey()
  @ApiOperation({
    summary: 'Delete a video from the library',
    description:
      'Deletes the transcripts of a video from the library, on every plan. They are not found from then on, and fetched and charged again ' +
      'by the next call that needs them, unless they are cached. Results of jobs and subscriptions stay until they expire.',
  })
  @ApiNoContentResponse({ description: 'The video was deleted from the library.' })
  @ApiId('The ID or the URL of the video.', 'hl-island__', {
    title: 'The library has no video with this ID',
    error: new NotInLibraryError(),
  })
  deleteLibraryVideo(@Param('id') id: string, @Req() request: Request): Promise<void> {
    const { caller, actor } = requestContext(request);
    return this.library.deleteVideo(caller.organization.id, id, actor);
  }

  @Delete()
  @RequiresApiKey()
  @ApiOperation({
    summary: 'Delete a channel from the library',
    description: 'Deletes the transcripts of all videos of a channel from the library, on every plan.',
  })
  @ApiResult(HttpStatus.OK, DeletedVideosDto, 'What was deleted.', { videos: 118 })
  deleteLibraryChannel(
    @Query() { channel }: LibraryChannelQueryDto,
    @Req() request: Request,
  ): Promise<DeletedVideosDto> {
    const { caller, actor } = requestContext(request);
    return this.library.deleteChannel(caller.organization.id, channel, actor);
  }
}

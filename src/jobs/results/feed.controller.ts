import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { requestContext } from '../../http/server/request-context.js';
import { ApiResults, CURSOR_EXPIRED, CURSOR_UNKNOWN, OnJobs } from '../dto/api-jobs.js';
import { FEED_EXAMPLE, FEED_LINES_EXAMPLE, FeedDto } from '../dto/subscription.dto.js';
import { FeedQueryDto } from '../dto/subscriptions-request.dto.js';
import { FeedService } from './feed.service.js';
import { ResultsResponse } from './results-response.js';

@ApiTags('subscriptions')
@Controller('feed')
export class FeedController {
  constructor(
    private readonly feed: FeedService,
    private readonly results: ResultsResponse,
  ) {}

  @Get()
  @OnJobs('subscription', { limitsConcurrency: true })
  @ApiOperation({
    summary: 'The results of all subscriptions',
    description:
      'Returns the entries of all subscriptions of the organization in the order in which they became final, each with its subscription, ' +
      'channel and labels, on every plan. One cursor serves for all of them: request `after` with the `next` of the last response, also ' +
      'when it had no entries. With `label` or `channel` a page can have fewer entries than `limit` before the end: when `next` has ' +
      'changed, request it at once. Without `after` the oldest stored entry comes first.',
  })
  @ApiResults(FeedDto, 'feed', FEED_EXAMPLE, FEED_LINES_EXAMPLE)
  @ApiErrors(CURSOR_EXPIRED, CURSOR_UNKNOWN)
  getFeed(
    @Query() { label, channel, ...query }: FeedQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { id } = requestContext(request).caller.organization;
    return this.results.send(
      'feed',
      (page) => this.feed.read(id, { ...page, label, channel }),
      query,
      request,
      response,
    );
  }
}

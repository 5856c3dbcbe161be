import { Body, Controller, Delete, Get, HttpCode, HttpStatus, Param, Post, Req } from '@nestjs/common';
import { ApiNoContentResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresFeature } from '../../auth/auth.decorators.js';
import { Environment } from '../../config/environment.js';
import { addressOf, audienceUrl } from '../../http/errors/challenge.js';
import { ApiErrors, ApiId } from '../../http/errors/error-docs.js';
import { ApiResult } from '../../http/routes/response-docs.js';
import { AllowsHead } from '../../http/routes/route.decorators.js';
import { requestContext } from '../../http/server/request-context.js';
import {
  FEED_LINK_ID,
  FeedLinkNotFoundError,
  FeedLinksService,
  TooManyFeedLinksError,
} from '../../organizations/feed-links.service.js';
import { OnJobs } from '../dto/api-jobs.js';
import { CreateFeedLinkDto, FEED_LINK, FeedLinksDto, NEW_FEED_LINK, NewFeedLinkDto } from '../dto/feed-link.dto.js';
import { SubscriptionNotFoundError } from '../job.js';

/** The addresses at which readers of feeds get the newest entries without a key. */
@ApiTags('subscriptions')
@Controller('feed-links')
export class FeedLinksController {
  constructor(
    private readonly links: FeedLinksService,
    private readonly environment: Environment,
  ) {}

  @Post()
  @RequiresFeature('channel_subscriptions', { limitsConcurrency: false })
  @ApiOperation({
    summary: 'Create the address of a feed',
    description:
      'Creates an address at which feed readers, which send no key, get the newest 50 entries that have a transcript: as Atom 1.0, ' +
      'JSON Feed 1.1 or RSS 2.0. Requires the Pro plan. Whoever has the address can read them, and nothing else, until it is deleted.',
  })
  @ApiResult(HttpStatus.CREATED, NewFeedLinkDto, 'The new feed link, including its address.', NEW_FEED_LINK)
  @ApiErrors(
    { title: 'The organization has no subscription with this ID', error: new SubscriptionNotFoundError() },
    { title: 'The organization has too many feed links', error: new TooManyFeedLinksError() },
  )
  async createFeedLink(
    @Body() { subscription, label }: CreateFeedLinkDto,
    @Req() request: Request,
  ): Promise<NewFeedLinkDto> {
    const { caller, actor, log } = requestContext(request);
    const created = await this.links.create(caller.organization.id, { subscription, label }, actor);
    if (!created) throw new SubscriptionNotFoundError();
    const { id, token } = created;
    log['feedLinkId'] = id;
    return { id, url: `${addressOf(request, audienceUrl(this.environment)) ?? ''}/feed/${token}.atom` };
  }

  @Get()
  @AllowsHead()
  @OnJobs('subscription')
  @ApiOperation({ summary: 'List feed links', description: 'Available on every plan. Addresses are not among it.' })
  @ApiResult(HttpStatus.OK, FeedLinksDto, 'The feed links, oldest first.', { feedLinks: [FEED_LINK] })
  async listFeedLinks(@Req() request: Request): Promise<FeedLinksDto> {
    return { feedLinks: await this.links.list(requestContext(request).caller.organization.id) };
  }

  @Delete(':id')
  @HttpCode(HttpStatus.NO_CONTENT)
  @OnJobs('subscription')
  @ApiId('The ID of the feed link (`fln_…`).', FEED_LINK.id, {
    title: 'The organization has no feed link with this ID',
    error: new FeedLinkNotFoundError(),
  })
  @ApiOperation({
    summary: 'Delete a feed link',
    description: 'Its address is 404 from the next read on. Available on every plan.',
  })
  @ApiNoContentResponse({ description: 'The feed link is deleted.' })
  deleteFeedLink(@Param('id') id: string, @Req() request: Request): Promise<void> {
    const { caller, actor, log } = requestContext(request);
    if (FEED_LINK_ID.test(id)) log['feedLinkId'] = id;
    return this.links.delete(caller.organization.id, id, actor);
  }
}

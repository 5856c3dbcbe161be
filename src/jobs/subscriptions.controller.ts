import {
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  HttpStatus,
  Param,
  Patch,
  Post,
  Query,
  Req,
  Res,
} from '@nestjs/common';
import { ApiExtraModels, ApiNoContentResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { invalidField } from '../domain/errors.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { ApiIdempotencyKey } from '../http/routes/idempotency-key.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { AllowsHead } from '../http/routes/route.decorators.js';
import { payerOf } from '../transcripts/transcripts.service.js';
import {
  ApiResults,
  CURSOR_EXPIRED,
  CURSOR_UNKNOWN,
  idempotencyOf,
  locationOf,
  OnJob,
  OnJobs,
  organizationOf,
  TOO_MUCH_STORED,
} from './dto/api-jobs.js';
import { ResultsQueryDto } from './dto/jobs-request.dto.js';
import {
  NEW_SUBSCRIPTION_EXAMPLE,
  PAUSED_SUBSCRIPTION_EXAMPLE,
  RESULTS_EXAMPLE,
  RESULTS_LINES_EXAMPLE,
  SUBSCRIPTION_EXAMPLE,
  SubscriptionDto,
  SubscriptionRequestDto,
  SubscriptionResultsDto,
  SUBSCRIPTIONS_PAGE_EXAMPLE,
  SubscriptionsPageDto,
} from './dto/subscription.dto.js';
import {
  ChangeSubscriptionDto,
  CreateSubscriptionDto,
  SubscriptionsQueryDto,
} from './dto/subscriptions-request.dto.js';
import { ResultsResponse } from './results/results-response.js';
import {
  CHECK_REQUEST_SECONDS,
  CheckRequestedError,
  SubscriptionPausedError,
  TooManySubscriptionsError,
} from './job.js';
import { SubscriptionsService } from './subscriptions.service.js';

const NOTHING_TO_CHANGE = invalidField('body', 'The body must contain at least one field to change.');

/** Subscriptions to channels and playlists. Only creating one needs a plan, so that a customer who changes the plan keeps the access. */
@ApiTags('subscriptions')
@ApiExtraModels(SubscriptionRequestDto)
@Controller('subscriptions')
export class SubscriptionsController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly results: ResultsResponse,
  ) {}

  @Post()
  @RequiresFeature('channel_subscriptions', { limitsConcurrency: false })
  @ApiOperation({
    summary: 'Follow a channel or playlist',
    description:
      'Checks a channel or playlist for new uploads from now on, and fetches the transcript of each. Requires the Pro plan. Each upload is delivered ' +
      'and charged exactly once. What is live, announced, or not yet captioned is tried again until it has its text, so nothing is ' +
      'lost that comes late. A check costs no quota. A second subscription to the same one is allowed.',
  })
  @ApiIdempotencyKey('subscription')
  @ApiResult(
    HttpStatus.CREATED,
    SubscriptionDto,
    'The new subscription, or the one that a request with the same key has created.',
    NEW_SUBSCRIPTION_EXAMPLE,
    locationOf('subscription'),
  )
  @ApiErrors(
    invalidField('checkMinutes', 'checkMinutes must be an integer from 15 to 1440.'),
    'channel_not_found',
    { title: 'The organization has too many subscriptions', error: new TooManySubscriptionsError(100) },
    TOO_MUCH_STORED,
  )
  async createSubscription(@Body() body: CreateSubscriptionDto, @Req() request: Request): Promise<SubscriptionDto> {
    const context = requestContext(request);
    const subscription = await this.subscriptions.create(body, payerOf(context), idempotencyOf(request), context.actor);
    context.log['subscriptionId'] = subscription.id;
    context.setHeader('Location', `/subscriptions/${subscription.id}`);
    return subscription;
  }

  @Get()
  @AllowsHead()
  @OnJobs('subscription')
  @ApiOperation({
    summary: 'List subscriptions',
    description:
      'Lists the subscriptions of the organization, newest first, on every plan. Operations on existing subscriptions cost no quota and ' +
      'share a rate limit of their own: as many requests per minute as the other operations together, counted separately.',
  })
  @ApiResult(HttpStatus.OK, SubscriptionsPageDto, 'A page of subscriptions, newest first.', SUBSCRIPTIONS_PAGE_EXAMPLE)
  @ApiErrors(new UnknownCursorError(NEW_SUBSCRIPTION_EXAMPLE.id))
  listSubscriptions(@Query() page: SubscriptionsQueryDto, @Req() request: Request): Promise<SubscriptionsPageDto> {
    return this.subscriptions.list(requestContext(request).caller.organization.id, page);
  }

  @Get(':id')
  @AllowsHead()
  @OnJob('subscription')
  @ApiOperation({
    summary: 'Retrieve a subscription',
    description: 'Returns the state and the counts of a subscription, and when it is checked, on every plan.',
  })
  @ApiResult(HttpStatus.OK, SubscriptionDto, 'The subscription.', SUBSCRIPTION_EXAMPLE)
  getSubscription(@Param('id') id: string, @Req() request: Request): Promise<SubscriptionDto> {
    return this.subscriptions.get(organizationOf(request, 'subscription', id), id);
  }

  @Patch(':id')
  @OnJob('subscription')
  @ApiOperation({
    summary: 'Change, pause or continue a subscription',
    description:
      'Changes the time between checks, the labels, or what is fetched of the uploads that are read from then on, pauses a ' +
      'subscription, or lets it go on, on every plan. Pending uploads stay; those that are being read end as they began. One that was paused is checked, ' +
      `${CHECK_REQUEST_SECONDS} seconds after the last requested check at the earliest, and delivers what was uploaded meanwhile. ` +
      'On a plan without subscriptions it pauses again with the reason `plan_changed`. What is fetched after a change is charged to ' +
      'the API key that makes it, and within its monthly limit.',
  })
  @ApiResult(HttpStatus.OK, SubscriptionDto, 'The changed subscription.', PAUSED_SUBSCRIPTION_EXAMPLE)
  @ApiErrors(NOTHING_TO_CHANGE)
  changeSubscription(
    @Param('id') id: string,
    @Body() body: ChangeSubscriptionDto,
    @Req() request: Request,
  ): Promise<SubscriptionDto> {
    if (Object.values(body).every((value) => value === undefined)) throw NOTHING_TO_CHANGE;
    return this.subscriptions.change(
      organizationOf(request, 'subscription', id),
      id,
      body,
      requestContext(request).actor,
    );
  }

  @Delete(':id')
  @HttpCode(HttpStatus.NO_CONTENT)
  @OnJob('subscription')
  @ApiOperation({
    summary: 'Delete a subscription',
    description:
      'Ends a subscription and deletes its results, on every plan. What was fetched stays charged, also what is being fetched.',
  })
  @ApiNoContentResponse({ description: 'The subscription was deleted.' })
  deleteSubscription(@Param('id') id: string, @Req() request: Request): Promise<void> {
    return this.subscriptions.delete(organizationOf(request, 'subscription', id), id, requestContext(request).actor);
  }

  @Post(':id/check')
  @OnJob('subscription')
  @ApiOperation({
    summary: 'Check a subscription now',
    description:
      `Reads the list of uploads now, and tries the pending ones again, at most every ${CHECK_REQUEST_SECONDS} seconds, on every plan. ` +
      'The check has ended when `nextCheckAt` is later than in this response and lies in the future: `checkedAt` has changed when it has ' +
      'read the list, else `reason` can say what holds it up.',
  })
  @ApiResult(HttpStatus.ACCEPTED, SubscriptionDto, 'The subscription, which is checked soon.', SUBSCRIPTION_EXAMPLE)
  @ApiErrors(
    { title: 'The caller has paused the subscription', error: new SubscriptionPausedError() },
    { title: 'A check was requested a moment ago', error: new CheckRequestedError(7) },
  )
  checkSubscription(@Param('id') id: string, @Req() request: Request): Promise<SubscriptionDto> {
    return this.subscriptions.check(organizationOf(request, 'subscription', id), id);
  }

  @Get(':id/results')
  @OnJob('subscription', { limitsConcurrency: true })
  @ApiOperation({
    summary: 'The results of a subscription',
    description:
      'Returns the entries of a subscription in the order in which they became final, each upload exactly once, on every plan. Request ' +
      '`after` with the `next` of the last response, also when it had no entries: `nextCheckAt` states when there can be new ' +
      'ones. Without `after` the oldest stored entry comes first. Results are stored for a week, unless the service is configured ' +
      'otherwise, and those that are kept until they are deleted.',
  })
  @ApiResults(SubscriptionResultsDto, 'subscription', RESULTS_EXAMPLE, RESULTS_LINES_EXAMPLE)
  @ApiErrors(CURSOR_EXPIRED, CURSOR_UNKNOWN)
  getSubscriptionResults(
    @Param('id') id: string,
    @Query() query: ResultsQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const organizationId = organizationOf(request, 'subscription', id);
    return this.results.send(
      'subscription',
      (page) => this.subscriptions.results(organizationId, id, page),
      query,
      request,
      response,
    );
  }
}

import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { StoredFields } from '../../http/routes/field.js';
import { storedForm } from '../../http/routes/validation.js';
import { dateTime, dateTimeOrNull, objectOrNull, PageDto, textOrNull } from '../../http/routes/response-docs.js';
import { TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/api-transcripts.js';
import { CHANNEL_PROPERTIES, ChannelDto, EntryDto } from '../../transcripts/dto/transcripts-response.dto.js';
import {
  SUBSCRIPTION_REASONS,
  SUBSCRIPTION_STATES,
  type SubscriptionReason,
  type SubscriptionState,
} from '../subscription.js';
import { JobSummaryDto } from './job.dto.js';
import { CreateSubscriptionDto } from './subscriptions-request.dto.js';

/** The examples of the OpenAPI document: a subscription that was just created, and one that was checked. */
export const NEW_SUBSCRIPTION_EXAMPLE = {
  id: 'sub_6NfRk2pVx8ZbQ1mLtY4c9H',
  state: 'active',
  reason: null,
  channel: null,
  request: storedForm(CreateSubscriptionDto, {
    channel: '@harbourlight',
    languages: ['en', 'de'],
    kinds: ['video'],
  }),
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
  createdAt: '2026-11-20T16:00:00.000Z',
  checkedAt: null,
  nextCheckAt: '2026-11-20T16:00:00.000Z',
} satisfies SubscriptionDto;

export const SUBSCRIPTION_EXAMPLE = {
  ...NEW_SUBSCRIPTION_EXAMPLE,
  channel: TRANSCRIPTS_EXAMPLE.channel,
  summary: { total: 3, succeeded: 1, failed: 1, cached: 0, fetched: 1, pending: 1 },
  checkedAt: '2026-11-24T09:17:03.000Z',
  nextCheckAt: '2026-11-24T10:17:00.000Z',
} satisfies SubscriptionDto;

export const PAUSED_SUBSCRIPTION_EXAMPLE = {
  ...SUBSCRIPTION_EXAMPLE,
  state: 'paused',
  reason: 'paused_by_caller',
  nextCheckAt: null,
} satisfies SubscriptionDto;

export const SUBSCRIPTIONS_PAGE_EXAMPLE = {
  subscriptions: [SUBSCRIPTION_EXAMPLE],
  next: null,
} satisfies SubscriptionsPageDto;

/** What a subscription was created with; `checkMinutes` can be changed later. */
@ApiSchema({ name: 'SubscriptionRequest' })
export class SubscriptionRequestDto extends StoredFields(CreateSubscriptionDto) {}

/** A channel that is followed. Times are ISO 8601 in UTC. */
@ApiSchema({ name: 'Subscription' })
export class SubscriptionDto {
  @ApiProperty({ description: 'The ID of the subscription.' })
  id: string;

  @ApiProperty({
    enum: SUBSCRIPTION_STATES,
    description: '`active`: the channel is checked. `paused`: it waits for what `reason` names.',
  })
  state: SubscriptionState;

  @ApiProperty({
    type: String,
    enum: [...SUBSCRIPTION_REASONS, null],
    nullable: true,
    description:
      'Why the subscription is paused. `plan_limit_exceeded`: the quota is used up; checks go on, and nothing is skipped when the ' +
      'month turns or the limit grows. `plan_changed`: the plan does not include subscriptions any more. `channel_not_found`, `upstream_blocked`: ' +
      'the channel could not be read for three days, or was never found; it is tried again every day. `paused_by_caller`: until `state` is set to ' +
      '`active`. The others end by themselves. An active one can have `upstream_blocked`, `channel_not_found` or `list_incomplete` too, while it is tried again.',
  })
  reason: SubscriptionReason | null;

  @ApiProperty(objectOrNull('The channel. Null until it was looked up.', CHANNEL_PROPERTIES))
  channel: ChannelDto | null;

  @ApiProperty({ description: 'The request that created the subscription.' })
  request: SubscriptionRequestDto;

  @ApiProperty({
    description:
      'Counts of the uploads that were delivered or are pending, not of those that were listed before the start.',
  })
  summary: JobSummaryDto;

  @ApiProperty(dateTime('When the subscription was created.'))
  createdAt: string;

  @ApiProperty(dateTimeOrNull('When the list of uploads was last read. Null before the first check.'))
  checkedAt: string | null;

  @ApiProperty(
    dateTimeOrNull(
      'When the list of uploads is read next; in the past while a check is due. Null when that has no time.',
    ),
  )
  nextCheckAt: string | null;
}

@ApiSchema({ name: 'Subscriptions' })
export class SubscriptionsPageDto extends PageDto {
  @ApiProperty({ type: [SubscriptionDto], description: 'Subscriptions of the organization, newest first.' })
  subscriptions: SubscriptionDto[];
}

/** The example of the OpenAPI document: the first two entries of a feed. */
export const FEED_EXAMPLE = {
  results: TRANSCRIPTS_EXAMPLE.results,
  next: 2,
  subscription: SUBSCRIPTION_EXAMPLE,
} satisfies SubscriptionResultsDto;

export const FEED_LINES_EXAMPLE = [
  ...FEED_EXAMPLE.results.map((result, at) => ({ type: 'result', cursor: at + 1, result })),
  { type: 'summary', summary: SUBSCRIPTION_EXAMPLE.summary, next: 2, subscription: SUBSCRIPTION_EXAMPLE },
];

/** Written as text by `ResultsResponse`, because stored entries are already JSON. */
@ApiSchema({ name: 'SubscriptionResults' })
export class SubscriptionResultsDto {
  @ApiProperty({
    type: [EntryDto],
    description: 'Entries in the order in which they became final, each upload exactly once.',
  })
  results: EntryDto[];

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'The `after` of the next request, also when there is nothing new yet.',
  })
  next: number;

  @ApiProperty({ description: 'The subscription at the time of the last entry.' })
  subscription: SubscriptionDto;
}

@ApiSchema({ name: 'UploadEventData' })
class UploadEventDataDto {
  @ApiProperty({ description: 'The ID of the subscription.' })
  subscriptionId: string;

  @ApiProperty({ description: 'The ID of the video.' })
  videoId: string;

  @ApiProperty({ description: 'The URL of the video.' })
  url: string;

  @ApiProperty(textOrNull('The title. Null when YouTube lists the video without one.'))
  title: string | null;

  @ApiProperty(dateTimeOrNull('The exact time of publication. Null when YouTube gives no exact time.'))
  publishedAt: string | null;

  @ApiProperty(
    textOrNull('Of `upload.failed`: why there is no transcript, as `error.code` of the entry. Otherwise null.'),
  )
  code: string | null;

  @ApiProperty({
    description: 'The path of the feed from just before this entry: `/subscriptions/{id}/results?after={cursor}`.',
  })
  results: string;
}

/** The body of a message to a webhook about an upload of a followed channel. */
@ApiSchema({ name: 'UploadEvent' })
export class UploadEventDto {
  @ApiProperty({
    enum: ['upload.ready', 'upload.failed'],
    description: '`upload.ready`: the transcript can be read. `upload.failed`: there is none, for good.',
  })
  type: string;

  @ApiProperty(dateTime('When the entry became final.'))
  timestamp: string;

  @ApiProperty({ description: 'The upload.' })
  data: UploadEventDataDto;
}

@ApiSchema({ name: 'SubscriptionEventData' })
class SubscriptionEventDataDto {
  @ApiProperty({ description: 'The ID of the subscription.' })
  subscriptionId: string;

  @ApiProperty({ enum: ['paused'], description: 'The state that the subscription has entered.' })
  state: string;

  @ApiProperty({ enum: SUBSCRIPTION_REASONS, description: 'As `reason` of the subscription.' })
  reason: string;

  @ApiProperty(textOrNull('The ID of the channel. Null when it was not found yet.'))
  channelId: string | null;

  @ApiProperty({ description: 'The counts of the subscription when the event occurred.' })
  summary: JobSummaryDto;
}

/** The body of a message to a webhook about a subscription. */
@ApiSchema({ name: 'SubscriptionEvent' })
export class SubscriptionEventDto {
  @ApiProperty({ enum: ['subscription.paused'], description: 'The event.' })
  type: string;

  @ApiProperty(dateTime('When the event occurred.'))
  timestamp: string;

  @ApiProperty({ description: 'The subscription.' })
  data: SubscriptionEventDataDto;
}

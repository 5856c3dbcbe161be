import { ApiSchema } from '@nestjs/swagger';
import { z } from 'zod';
import { page } from '../../domain/page.js';
import { dateTime, dateTimeOrNull, textOrNull } from '../../domain/schema-fields.js';
import { Channel, Playlist, Upload } from '../../domain/transcript.js';
import { StoredFields } from '../../http/routes/field.js';
import { storedForm } from '../../http/routes/validation.js';
import { instanceOf, orNull } from '../../http/routes/response-docs.js';
import { TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/api-transcripts.js';
import { EntryDto } from '../../transcripts/dto/transcripts-response.dto.js';
import { SUBSCRIPTION_REASONS, SUBSCRIPTION_STATES } from '../job.js';
import { CURSORS_EXAMPLE, JobSummaryDto, labels } from './job.dto.js';
import { keepState } from './jobs-request.dto.js';
import { CreateSubscriptionDto } from './subscriptions-request.dto.js';

/** What a subscription was created with, and what of it was changed since then. */
@ApiSchema({ name: 'SubscriptionRequest' })
export class SubscriptionRequestDto extends StoredFields(CreateSubscriptionDto) {}

/** A channel or playlist that is followed. Times are ISO 8601 in UTC. */
export const SubscriptionDto = z
  .object({
    id: z.string().describe('The ID of the subscription.'),
    state: z
      .enum(SUBSCRIPTION_STATES)
      .describe('`active`: the channel or playlist is checked. `paused`: it waits for what `reason` names.'),
    reason: z
      .enum(SUBSCRIPTION_REASONS)
      .nullable()
      .describe(
        'Why the subscription is paused. `plan_limit_exceeded`: the quota is used up; checks go on, and nothing is skipped when the ' +
          'month turns or the limit grows. `plan_changed`: the plan does not include subscriptions any more. `channel_not_found`, `playlist_not_found`, `upstream_blocked`: ' +
          'the list could not be read for three days, or was never found; it is tried again every day. `paused_by_caller`: until `state` is set to ' +
          '`active`. The others end by themselves. An active one can have `upstream_blocked`, `channel_not_found`, `playlist_not_found` or `list_incomplete` too, while it is tried again.',
      ),
    channel: orNull(
      Channel,
      'The channel. Null until it was looked up, which a new subscription does unless YouTube does not respond, and for a playlist.',
    ),
    playlist: orNull(Playlist, 'The playlist. Null until it was looked up, and for a channel.'),
    request: instanceOf(SubscriptionRequestDto).describe(
      'The request that created the subscription, with what was changed since then.',
    ),
    labels,
    keep: keepState,
    startFound: z
      .boolean()
      .nullable()
      .describe(
        'Whether the video of `start` was listed. When it was not, the subscription began as with `now`. Null until the first check, and ' +
          'for another `start`.',
      ),
    summary: JobSummaryDto.describe(
      'Counts of the uploads that were delivered or are pending, not of those that were listed before the start.',
    ),
    createdAt: dateTime('When the subscription was created.'),
    checkedAt: dateTimeOrNull('When the list of uploads was last read. Null before the first check.'),
    nextCheckAt: dateTimeOrNull(
      'When the list of uploads is read next; in the past while a check is due. Null when that has no time.',
    ),
  })
  .meta({ id: 'Subscription' });
export type SubscriptionDto = z.infer<typeof SubscriptionDto>;

export const SubscriptionsPageDto = page
  .extend({ subscriptions: z.array(SubscriptionDto).describe('Subscriptions of the organization, newest first.') })
  .meta({ id: 'Subscriptions' });
export type SubscriptionsPageDto = z.infer<typeof SubscriptionsPageDto>;

const next = z.string().describe('The `after` of the next request, also when there is nothing new yet.');

/** Written as text by `ResultsResponse`, because stored entries are already JSON. */
export const SubscriptionResultsDto = z
  .object({
    results: z.array(EntryDto).describe('Entries in the order in which they became final, each upload exactly once.'),
    next,
    subscription: SubscriptionDto.describe('The subscription at the time of the last entry.'),
  })
  .meta({ id: 'SubscriptionResults' });
export type SubscriptionResultsDto = z.infer<typeof SubscriptionResultsDto>;

/** An entry of the feed, which states whose it is. */
const FeedEntryDto = z
  .object({
    subscriptionId: SubscriptionDto.shape.id,
    channel: SubscriptionDto.shape.channel,
    labels,
    ...EntryDto.shape,
  })
  .meta({ id: 'FeedVideoTranscript' });

/** Written as text by `ResultsResponse`. */
export const FeedDto = z
  .object({
    results: z
      .array(FeedEntryDto)
      .describe(
        'Entries of all subscriptions in the order in which they became final, each upload of a subscription once.',
      ),
    next,
  })
  .meta({ id: 'Feed' });
export type FeedDto = z.infer<typeof FeedDto>;

const UploadEventData = z
  .object({
    subscriptionId: SubscriptionDto.shape.id,
    labels,
    channel: SubscriptionDto.shape.channel,
    videoId: z.string().describe('The ID of the video.'),
    url: Upload.shape.url,
    title: Upload.shape.title,
    publishedAt: dateTimeOrNull('The exact time of publication. Null when YouTube gives no exact time.'),
    code: textOrNull('Of `upload.failed`: why there is no transcript, as `error.code` of the entry. Otherwise null.'),
    results: z
      .string()
      .describe('The path that returns this entry alone: `/subscriptions/{id}/results?after={cursor}&limit=1`.'),
  })
  .meta({ id: 'UploadEventData' });

/** The body of a message to a webhook about an upload that a subscription has found. */
export const UploadEventDto = z
  .object({
    type: z
      .enum(['upload.ready', 'upload.failed'])
      .describe('`upload.ready`: the transcript can be read. `upload.failed`: there is none, for good.'),
    timestamp: dateTime('When the entry became final.'),
    data: UploadEventData.describe('The upload.'),
  })
  .meta({ id: 'UploadEvent' });

const SubscriptionEventData = z
  .object({
    subscriptionId: SubscriptionDto.shape.id,
    labels,
    state: z.literal('paused').describe('The state that the subscription has entered.'),
    reason: z.enum(SUBSCRIPTION_REASONS).describe('As `reason` of the subscription.'),
    channelId: textOrNull('The ID of the channel. Null when it was not found yet, and for a playlist.'),
    summary: JobSummaryDto.describe('The counts of the subscription when the event occurred.'),
  })
  .meta({ id: 'SubscriptionEventData' });

export const SubscriptionEventDto = z
  .object({
    type: z.literal('subscription.paused').describe('The event.'),
    timestamp: dateTime('When the event occurred.'),
    data: SubscriptionEventData.describe('The subscription.'),
  })
  .meta({ id: 'SubscriptionEvent' });

// The examples of the OpenAPI document: a subscription that was just created, and one that was checked.

export const NEW_SUBSCRIPTION_EXAMPLE = {
  id: 'sub_6NfRk2pVx8ZbQ1mLtY4c9H',
  state: 'active',
  reason: null,
  channel: TRANSCRIPTS_EXAMPLE.channel,
  playlist: null,
  request: storedForm(CreateSubscriptionDto, {
    channel: '@harbourlight',
    languages: ['en', 'de'],
    kinds: ['video'],
    labels: { user: '42' },
  }),
  labels: { user: '42' },
  keep: 'off',
  startFound: null,
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
  createdAt: '2026-11-20T16:00:00.000Z',
  checkedAt: null,
  nextCheckAt: '2026-11-20T16:00:00.000Z',
} satisfies SubscriptionDto;

export const SUBSCRIPTION_EXAMPLE = {
  ...NEW_SUBSCRIPTION_EXAMPLE,
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

export const RESULTS_EXAMPLE = {
  results: TRANSCRIPTS_EXAMPLE.results,
  next: CURSORS_EXAMPLE[1],
  subscription: SUBSCRIPTION_EXAMPLE,
} satisfies SubscriptionResultsDto;

export const RESULTS_LINES_EXAMPLE = [
  ...RESULTS_EXAMPLE.results.map((result, at) => ({ type: 'result', cursor: CURSORS_EXAMPLE[at], result })),
  {
    ...{ type: 'summary', summary: SUBSCRIPTION_EXAMPLE.summary },
    ...{ next: CURSORS_EXAMPLE[1], subscription: SUBSCRIPTION_EXAMPLE },
  },
];

const { id: subscriptionId, channel } = SUBSCRIPTION_EXAMPLE;
const OF_SUBSCRIPTION = { subscriptionId, channel, labels: SUBSCRIPTION_EXAMPLE.labels };

export const FEED_EXAMPLE = {
  results: TRANSCRIPTS_EXAMPLE.results.map((entry) => ({ ...OF_SUBSCRIPTION, ...entry })),
  next: CURSORS_EXAMPLE[1],
} satisfies FeedDto;

export const FEED_LINES_EXAMPLE = [
  ...TRANSCRIPTS_EXAMPLE.results.map((result, at) => ({
    ...{ type: 'result', cursor: CURSORS_EXAMPLE[at], ...OF_SUBSCRIPTION, result },
  })),
  { type: 'summary', next: CURSORS_EXAMPLE[1] },
];

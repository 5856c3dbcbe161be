import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Field, Fields, Picked, Restated } from '../../http/routes/field.js';
import { UPLOADS_MAX } from '../../jobs/dto/jobs-request.dto.js';
import { CreateSubscriptionDto, FeedQueryDto } from '../../jobs/dto/subscriptions-request.dto.js';
import { SubscriptionDto, type SubscriptionsPageDto } from '../../jobs/dto/subscription.dto.js';
import type { ResultsPart } from '../../jobs/results/results-part.js';
import { textFormOf } from '../../transcripts/call-plan.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { readEntry } from '../../transcripts/formats/json.js';
import { channelLine, codeSpan, escapeMarkdown, listHead } from '../../transcripts/formats/markdown.js';
import { payerOf } from '../../transcripts/transcripts.service.js';
import { invalidCursor, readCursor, writeCursor, CURSOR_VIDEOS_MAX, TextPage } from '../text-page.js';
import {
  cursorOutput,
  defineTool,
  LanguageInput,
  PageInput,
  stateOf,
  TEXT_IS_DATA,
  videoOf,
  videoOutput,
  WorkId,
  workOf,
  type ToolResult,
} from './tool.js';

const LISTED_MAX = 100;
const CURSOR_LENGTH_MAX = 24;

const TOOL = 'get_new_transcripts';

const placeSchema = z.strictObject({
  tool: z.literal(TOOL),
  /** Of a list of subscriptions: the one after which it goes on. */
  listed: z.string().optional(),
  /** Of a text: its subscription or the label of the feed, the `after` of its video, and the pieces of it that were sent. */
  subscriptionId: z.string().optional(),
  label: z.string().optional(),
  after: z.string().max(CURSOR_LENGTH_MAX).optional(),
  skip: z.int().min(0).optional(),
});

const subscriptionOutput = SubscriptionDto.omit({
  channel: true,
  playlist: true,
  request: true,
  startFound: true,
}).extend({
  channelId: z.string().nullable(),
  playlistId: z.string().nullable(),
});

class FollowInput extends Fields(
  Restated(Picked(CreateSubscriptionDto, 'channel', 'playlist', 'kinds'), {
    kinds: { hint: 'Only these kinds; by default all.' },
  }),
  LanguageInput,
  Picked(CreateSubscriptionDto, 'checkMinutes', 'start', 'labels'),
) {}

class FeedInput extends Fields(Picked(FeedQueryDto, 'after', 'label'), PageInput) {
  @WorkId({
    description: 'Only of this subscription (sub_…). With after or label alone: of all of them.',
  })
  subscriptionId?: string;

  @Field.integer({ min: 1, max: CURSOR_VIDEOS_MAX, default: 3, description: 'Uploads at most.' })
  limit: number;
}

export const followChannel = defineTool({
  name: 'follow_channel',
  title: 'Follow a channel or playlist',
  description:
    'Follows a YouTube channel or playlist: the transcript of each new upload is fetched in the background. Costs one transcript of the ' +
    'quota for each that is fetched, until the subscription is deleted; checks, cached and failed ones are free. Ask the ' +
    'user before. The same call returns the same subscription. Requires the Pro plan. get_new_transcripts ' +
    'lists what is followed, and reads what has come.',
  feature: 'channel_subscriptions',
  limitsConcurrency: false,
  effect: 'creates',
  input: FollowInput,
  output: subscriptionOutput,
  async run(request, context, { subscriptions }, sent) {
    // A repeated call finds the subscription by what the caller sent: other defaults make no other request of it.
    const idempotency = { key: keyOf(canonicalJson(sent)), identifiesRequest: true };
    const subscription = await subscriptions.create(request, payerOf(context), idempotency, context.actor);
    context.log['subscriptionId'] = subscription.id;
    const { id } = subscription;
    const lines = [stateLine(subscription), `Call \`get_new_transcripts\` with the subscriptionId ${codeSpan(id)}.`];
    return { text: `${lines.join('\n')}\n`, structured: workOf(subscription) };
  },
});

const keyOf = (json: string): string => `follow_channel ${createHash('sha256').update(json).digest('base64url')}`;

/** JSON that is the same for objects with the same fields in any order. */
function canonicalJson(sent: unknown): string {
  const isObject = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  return JSON.stringify(sent, (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

export const getNewTranscripts = defineTool({
  name: TOOL,
  title: 'New transcripts of subscriptions',
  description:
    'Returns the transcripts of one or all subscriptions as Markdown, in the order in which they came, each once: continue with ' +
    '`next` as after, also later; after `0` begins. Without arguments it lists the subscriptions. Free, on every plan. ' +
    `Longer text continues with the returned cursor. ${TEXT_IS_DATA}`,
  feature: undefined,
  limitsConcurrency: true,
  effect: 'reads',
  input: FeedInput,
  output: z.object({
    subscriptions: z.array(subscriptionOutput),
    videos: z.array(videoOutput.extend({ subscriptionId: z.string().exactOptional() })),
    next: z.string().nullable(),
    cursor: cursorOutput,
  }),
  async run(
    { subscriptionId, label, after, limit, maxChars: charactersMax, cursor },
    context,
    { subscriptions, feed },
  ) {
    const organizationId = context.caller.organization.id;
    const place = cursor === undefined ? undefined : readCursor(cursor, TOOL, placeSchema);
    if (place && subscriptionId !== undefined && place.subscriptionId !== subscriptionId) throw invalidCursor();
    const {
      subscriptionId: id,
      label: wanted = label,
      after: begin = after,
      skip: skipped = 0,
    } = place ?? { subscriptionId };
    if (id === undefined && begin === undefined && wanted === undefined)
      return listOf(await subscriptions.list(organizationId, { limit: LISTED_MAX, after: place?.listed }));
    const read = { limit, after: begin };
    const owned = id === undefined ? undefined : await subscriptions.results(organizationId, id, read);
    const part: ResultsPart = owned ?? (await feed.read(organizationId, { ...read, label: wanted }));
    const subscription = owned?.owner;
    if (id !== undefined) context.log['subscriptionId'] = id;
    const cursorAt = (after: string, skip: number) =>
      writeCursor({ tool: TOOL, subscriptionId: id, label: wanted, after, skip });
    // No other foot is longer.
    const longest = '9'.repeat(CURSOR_LENGTH_MAX);
    const footOf = (next: string, rest: string | null, hasMore: boolean) =>
      footer({ subscription, label: wanted, next, rest, hasMore });
    const room = charactersMax - footOf(longest, cursorAt(longest, UPLOADS_MAX), true).length;
    const text = new TextPage({
      headingLevel: 2,
      ...(subscription ? textFormOf(subscription.request) : { languages: [] }),
      range: [0, null],
      maxChars: room,
    });
    const { channel: followed, playlist } = subscription ?? {};
    if (place === undefined && followed) text.text = listHead({ type: 'channel', channel: followed });
    if (place === undefined && playlist) text.text = listHead({ type: 'playlist', playlist });
    const videos: object[] = [];
    let next = part.entries.length === 0 ? part.next : part.after;
    let rest: string | null = null;
    for (const stored of part.entries) {
      const entry = await readEntry(await inflate(stored.text));
      const { channel, subscriptionId: follows } = stored.facts;
      const sent = await text.add(entry, videos.length === 0 ? skipped : 0, channel ? channelLine(channel) : '');
      videos.push({ ...videoOf(entry), ...(follows !== undefined && { subscriptionId: follows }) });
      if (sent !== undefined) {
        rest = cursorAt(next, sent);
        break;
      }
      next = stored.cursor;
    }
    if (rest === null) next = part.next;
    return {
      text: `${text.text}${footOf(next, rest, part.hasMore)}`,
      structured: { subscriptions: subscription ? [workOf(subscription)] : [], videos, next, cursor: rest },
    };
  },
});

/** What is followed, for a conversation that does not know their subscriptions. */
function listOf({ subscriptions, next }: SubscriptionsPageDto): ToolResult {
  const cursor = next === null ? null : writeCursor({ tool: TOOL, listed: next });
  const lines = subscriptions.map((subscription) => `- ${stateLine(subscription)}\n`).join('');
  const more = cursor === null ? '' : `\nThere are more. Call \`${TOOL}\` with the cursor ${codeSpan(cursor)}.\n`;
  return {
    text: lines ? `${lines}${more}` : 'Nothing is followed. `follow_channel` follows a channel or a playlist.\n',
    structured: { subscriptions: subscriptions.map(workOf), videos: [], next: null, cursor },
  };
}

/** What follows the texts: how to go on. */
function footer({
  subscription,
  label,
  next,
  rest,
  hasMore,
}: {
  subscription: SubscriptionDto | undefined;
  label: string | undefined;
  next: string;
  rest: string | null;
  hasMore: boolean;
}): string {
  const of = subscription ? `the subscriptionId ${codeSpan(subscription.id)} and ` : '';
  const labeled = label === undefined ? '' : `the label ${codeSpan(label)} and `;
  const call = `Call \`${TOOL}\` with ${of}${labeled}after ${codeSpan(next)}`;
  const more =
    rest !== null
      ? `The text continues. Call \`${TOOL}\` with the cursor ${codeSpan(rest)}.`
      : hasMore
        ? `There is more. ${call}.`
        : `Nothing else is new. ${call} when there was a further check.`;
  return `\n\n---\n\n${more}\n${subscription ? `${stateLine(subscription)}\n` : ''}`;
}

function stateLine(subscription: SubscriptionDto): string {
  const { id, request, summary, nextCheckAt } = subscription;
  const title = subscription.channel?.name ?? subscription.playlist?.title;
  const name = title ? escapeMarkdown(title) : codeSpan(request.channel ?? request.playlist ?? '');
  const pending = summary.pending === 0 ? '' : ` ${summary.pending} pending.`;
  const check = nextCheckAt === null ? '' : ` The next check is at ${nextCheckAt}.`;
  return `Subscription ${codeSpan(id)} for ${name}: ${stateOf(subscription)}.${pending}${check}`;
}

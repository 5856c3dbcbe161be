import { createHash } from 'node:crypto';
import { z } from 'zod';
import { invalidField } from '../../domain/errors.js';
import { Field, Fields, Picked, Restated } from '../../http/routes/field.js';
import { ResultsQueryDto, UPLOADS_MAX } from '../../jobs/dto/jobs-request.dto.js';
import { CreateSubscriptionDto } from '../../jobs/dto/subscriptions-request.dto.js';
import { SubscriptionDto, type SubscriptionsPageDto } from '../../jobs/dto/subscription.dto.js';
import { textFormOf } from '../../transcripts/call-plan.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { readEntry } from '../../transcripts/formats/json.js';
import { codeSpan, escapeMarkdown, listHead } from '../../transcripts/formats/markdown.js';
import type { Entry } from '../../transcripts/delivery/transcript-events.js';
import { payerOf } from '../../transcripts/transcripts.service.js';
import { invalidCursor, readCursor, writeCursor } from '../cursor.js';
import { CURSOR_VIDEOS_MAX, TextPage } from '../text-page.js';
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

const TOOL = 'get_new_transcripts';

const placeSchema = z.strictObject({
  tool: z.literal(TOOL),
  /** Of a list of subscriptions: the one after which it goes on. */
  listed: z.string().optional(),
  /** Of a text: its subscription, the `after` of its video, and the pieces of it that were sent. */
  subscriptionId: z.string().optional(),
  after: z.int().min(0).max(UPLOADS_MAX).optional(),
  skip: z.int().min(0).optional(),
});

const subscriptionOutput = SubscriptionDto.omit({ channel: true, request: true }).extend({
  channelId: z.string().nullable(),
});

class FollowInput extends Fields(
  // In this order: a repeated call is known by the JSON of its input, also one to an earlier version.
  Restated(Picked(CreateSubscriptionDto, 'channel', 'kinds'), { kinds: { hint: 'Only these kinds; by default all.' } }),
  LanguageInput,
  Picked(CreateSubscriptionDto, 'checkMinutes', 'start'),
) {}

class FeedInput extends Fields(Picked(ResultsQueryDto, 'after'), PageInput) {
  @WorkId({
    description: `The ID of the subscription (sub_…). Without it the newest ${LISTED_MAX} are listed.`,
  })
  subscriptionId?: string;

  @Field.integer({ min: 1, max: CURSOR_VIDEOS_MAX, default: 3, description: 'Uploads at most.' })
  limit: number;
}

export const followChannel = defineTool({
  name: 'follow_channel',
  title: 'Follow a channel',
  description:
    'Follows a YouTube channel: the transcript of each new upload is fetched in the background. Costs one transcript of the ' +
    'quota for each upload that is fetched, until the subscription is deleted; checks, cached and failed uploads are free. Ask the ' +
    'user before. A call with the same parameters returns the same subscription. Requires the Pro plan. get_new_transcripts ' +
    'lists what is followed, and reads what has come.',
  feature: 'channel_subscriptions',
  limitsConcurrency: false,
  effect: 'creates',
  input: FollowInput,
  output: subscriptionOutput,
  async run(request, context, { subscriptions }) {
    // A repeated call finds the subscription by what it asks for.
    const key = createHash('sha256').update(JSON.stringify(request)).digest('base64url');
    const subscription = await subscriptions.create(request, payerOf(context), `follow_channel ${key}`, context.actor);
    context.log['subscriptionId'] = subscription.id;
    const { id } = subscription;
    const lines = [stateLine(subscription), `Call \`get_new_transcripts\` with the subscriptionId ${codeSpan(id)}.`];
    return { text: `${lines.join('\n')}\n`, structured: workOf(subscription) };
  },
});

export const getNewTranscripts = defineTool({
  name: TOOL,
  title: 'New transcripts of a followed channel',
  description:
    'Returns the transcripts of a followed channel as Markdown, in the order in which they came, each once: continue with `next` ' +
    'as after, also in a later conversation. Without a subscriptionId it lists the followed channels. Free, on every plan. ' +
    `Longer text continues with the returned cursor. ${TEXT_IS_DATA}`,
  feature: undefined,
  limitsConcurrency: true,
  effect: 'reads',
  input: FeedInput,
  output: z.object({
    subscriptions: z.array(subscriptionOutput),
    videos: z.array(videoOutput),
    next: z.int().nullable(),
    cursor: cursorOutput,
  }),
  async run({ subscriptionId, after, limit, maxChars: charactersMax, cursor }, context, { subscriptions }) {
    const organizationId = context.caller.organization.id;
    const place = cursor === undefined ? undefined : readCursor(cursor, TOOL, placeSchema);
    const id = subscriptionId ?? place?.subscriptionId;
    if (place && place.subscriptionId !== id) throw invalidCursor();
    if (id === undefined) {
      if (after !== undefined)
        throw invalidField('subscriptionId', 'subscriptionId is required with after, which belongs to it.');
      return listOf(await subscriptions.list(organizationId, { limit: LISTED_MAX, after: place?.listed }));
    }
    const { skip = 0 } = place ?? {};
    const feed = await subscriptions.results(organizationId, id, { limit, after: place?.after ?? after });
    context.log['subscriptionId'] = id;
    const { owner: subscription } = feed;
    const cursorAt = (after: number, skip: number) => writeCursor({ tool: TOOL, subscriptionId: id, after, skip });
    // No other foot is longer.
    const room = charactersMax - footOf(subscription, UPLOADS_MAX, cursorAt(UPLOADS_MAX, UPLOADS_MAX)).length;
    const text = new TextPage({
      headingLevel: 2,
      ...textFormOf(subscription.request),
      range: [0, null],
      maxChars: room,
    });
    if (place === undefined && subscription.channel)
      text.text = listHead({ type: 'channel', channel: subscription.channel });
    const entries: Entry<unknown>[] = [];
    const [first] = feed.entries;
    // Earlier entries may have expired: a place before them could not be read any more.
    let next = first ? first.sequence - 1 : feed.next;
    let rest: string | null = null;
    for (const { sequence, text: stored } of feed.entries) {
      const entry = await readEntry(await inflate(stored));
      const sent = await text.add(entry, entries.length === 0 ? skip : 0);
      entries.push(entry);
      if (sent !== undefined) {
        rest = cursorAt(sequence - 1, sent);
        break;
      }
      next = sequence;
    }
    return {
      text: `${text.text}${footOf(subscription, next, rest)}`,
      structured: {
        subscriptions: [workOf(subscription)],
        videos: entries.map(videoOf),
        ...{ next, cursor: rest },
      },
    };
  },
});

/** The followed channels, for a conversation that does not know their subscriptions. */
function listOf({ subscriptions, next }: SubscriptionsPageDto): ToolResult {
  const cursor = next === null ? null : writeCursor({ tool: TOOL, listed: next });
  const lines = subscriptions.map((subscription) => `- ${stateLine(subscription)}\n`).join('');
  const more = cursor === null ? '' : `\nThere are more. Call \`${TOOL}\` with the cursor ${codeSpan(cursor)}.\n`;
  return {
    text: lines ? `${lines}${more}` : 'No channel is followed. `follow_channel` follows one.\n',
    structured: { subscriptions: subscriptions.map(workOf), videos: [], next: null, cursor },
  };
}

/** What follows the texts: how to go on. */
function footOf(subscription: SubscriptionDto, next: number, rest: string | null): string {
  const { succeeded, failed } = subscription.summary;
  const call = `Call \`${TOOL}\` with the subscriptionId ${codeSpan(subscription.id)} and`;
  const more =
    rest !== null
      ? `The text continues. Call \`${TOOL}\` with the cursor ${codeSpan(rest)}.`
      : next < succeeded + failed
        ? `There is more. ${call} after ${next}.`
        : `Nothing else is new. ${call} after ${next} when the channel was checked again.`;
  return `\n\n---\n\n${more}\n${stateLine(subscription)}\n`;
}

function stateLine(subscription: SubscriptionDto): string {
  const { id, request, summary, nextCheckAt } = subscription;
  const name = subscription.channel ? escapeMarkdown(subscription.channel.name) : codeSpan(request.channel);
  const pending = summary.pending === 0 ? '' : ` ${summary.pending} pending.`;
  const check = nextCheckAt === null ? '' : ` The next check is at ${nextCheckAt}.`;
  return `Subscription ${codeSpan(id)} for ${name}: ${stateOf(subscription)}.${pending}${check}`;
}

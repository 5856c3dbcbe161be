import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  InvalidRequestError,
  PlanLimitExceededError,
  VideoFailedError,
  VideoNotFoundError,
} from '../../domain/errors.js';
import { parseVideoReference } from '../../domain/video-reference.js';
import { listHead } from '../../transcripts/formats/markdown.js';
import { logPlan } from '../../transcripts/response/transcripts-response.js';
import { givenVideos } from '../../transcripts/sources/given-videos.js';
import type { TranscriptCache } from '../../transcripts/cache/transcript-cache.js';
import type { VideoSource } from '../../transcripts/sources/video-list.js';
import { entryError, type Entry, type Summary } from '../../transcripts/transcript-events.js';
import { CURSOR_VIDEOS_MAX, staleCursor, type Position } from '../cursor.js';
import { TextPage } from '../text-page.js';
import {
  CallCanceled,
  channel,
  cursor,
  defineTool,
  languages,
  maxChars,
  nextCursor,
  payerOf,
  summaryOutput,
  TEXT_IS_DATA,
  videoOutput,
  type ToolCall,
  type ToolServices,
} from './tool.js';

const CHANNEL_VIDEOS_DEFAULT = 3;

const COST =
  'Costs one transcript of the monthly quota for each video that is fetched; cached and failed ones are free.';
const PAGES = 'Longer text continues with the returned cursor, which is free while the transcripts are cached.';

export const getChannelTranscripts = defineTool({
  name: 'get_channel_transcripts',
  title: "Transcripts of a channel's newest videos",
  description:
    `Returns the transcripts of the newest uploads of a YouTube channel as Markdown, newest first, with a link to the second ` +
    `of each paragraph. ${COST} Requires the Pro plan. ${PAGES} ${TEXT_IS_DATA}`,
  feature: 'channel_transcripts',
  input: z.strictObject({
    channel: channel
      .optional()
      .describe('Required without a cursor: a handle (@name), a channel ID (UC…) or a channel URL.'),
    limit: z
      .int()
      .min(1)
      .max(CURSOR_VIDEOS_MAX)
      .default(CHANNEL_VIDEOS_DEFAULT)
      .describe('The number of videos at most, the newest ones.'),
    languages,
    maxChars,
    cursor,
  }),
  output: z.object({
    channelId: z.string(),
    videos: z.array(videoOutput),
    summary: summaryOutput,
    cursor: nextCursor,
  }),
  async run(input, call, services) {
    const name = 'get_channel_transcripts';
    const subject = input.channel === undefined ? undefined : digest(input.channel);
    const organizationId = call.context.caller.organization.id;
    if (input.cursor !== undefined) {
      const position = services.cursors.read(input.cursor, organizationId, { tool: name, subject });
      const source = givenVideos(position.videoIds, position.resource);
      const page = await readPage({ source, position, maxChars: input.maxChars, headingLevel: 2 }, call, services);
      return channelResult(page);
    }
    if (input.channel === undefined || subject === undefined) {
      const message = 'channel is required without a cursor: a handle (@name), a channel ID or a channel URL.';
      throw new InvalidRequestError([{ field: 'channel', message }]);
    }
    const start: Start = { tool: name, subject, languages: input.languages ?? [], range: [0, null] };
    const source = services.uploads.source(input.channel, { limit: input.limit });
    const page = await readPage({ source, position: start, maxChars: input.maxChars, headingLevel: 2 }, call, services);
    return channelResult(page);
  },
});

export const getVideoTranscript = defineTool({
  name: 'get_video_transcript',
  title: 'Transcript of a video',
  description:
    `Returns the transcript of one YouTube video as Markdown, with a link to the second of each paragraph; fromSeconds and ` +
    `toSeconds select a part. Costs one transcript of the monthly quota if it has to be fetched; cached and failed ones are ` +
    `free. ${PAGES} ${TEXT_IS_DATA}`,
  feature: 'video_transcripts',
  input: z.strictObject({
    video: z
      .string()
      .min(1)
      .max(2048)
      .optional()
      .describe('Required without a cursor: the ID of a video (11 characters) or its URL on youtube.com or youtu.be.'),
    languages,
    fromSeconds: z.number().min(0).default(0).describe('Only what is said at or after this second.'),
    toSeconds: z.number().min(0).optional().describe('Only what is said before this second.'),
    maxChars,
    cursor,
  }),
  output: z.object({ video: videoOutput, summary: summaryOutput, cursor: nextCursor }),
  async run(input, call, services) {
    const name = 'get_video_transcript';
    const videoId = input.video === undefined ? undefined : parseVideoReference(input.video);
    if (input.video !== undefined && videoId === undefined) throw new VideoNotFoundError();
    if (input.toSeconds !== undefined && input.toSeconds <= input.fromSeconds) {
      throw new InvalidRequestError([{ field: 'toSeconds', message: 'toSeconds must be greater than fromSeconds.' }]);
    }
    const position = input.cursor === undefined ? startOf(videoId) : positionOf(input.cursor);
    const source = givenVideos([position.subject], position.subject);
    const page = await readPage({ source, position, maxChars: input.maxChars, headingLevel: 1 }, call, services);
    const [entry] = page.entries;
    if (!entry) throw new Error('The plan has no video.');
    if (!entry.ok) throw new VideoFailedError(entry.error);
    return { text: page.text, structured: { video: videoOf(entry), summary: page.summary, cursor: page.cursor } };

    function startOf(subject: string | undefined): Start {
      if (subject === undefined) {
        const message = 'video is required without a cursor: the ID or the URL of a video.';
        throw new InvalidRequestError([{ field: 'video', message }]);
      }
      return {
        tool: name,
        subject,
        languages: input.languages ?? [],
        range: [input.fromSeconds, input.toSeconds ?? null],
      };
    }

    function positionOf(given: string): Position {
      const { id } = call.context.caller.organization;
      return services.cursors.read(given, id, { tool: name, subject: videoId });
    }
  },
});

/** A position at the start of a text. */
type Start = Pick<Position, 'tool' | 'subject' | 'languages' | 'range'>;

interface PageRequest {
  source: VideoSource;
  position: Start | Position;
  maxChars: number;
  headingLevel: 1 | 2;
}

interface Page {
  text: string;
  resource: string;
  entries: Entry[];
  summary: Summary;
  cursor: string | null;
}

/** Fetches the videos of a source and writes as much of their texts as fits. */
async function readPage(
  { source, position, maxChars: charactersMax, headingLevel }: PageRequest,
  call: ToolCall,
  { transcripts, cache, cursors }: ToolServices,
): Promise<Page> {
  const { context, times } = call;
  const organizationId = context.caller.organization.id;
  if ('crc32' in position) await refuseStale(position, cache);
  const plan = await transcripts
    .prepare({ source, languages: position.languages }, payerOf(context), times)
    .catch((error: unknown) => {
      const isFixed = position.tool === 'get_video_transcript' || 'videoIds' in position;
      if (error instanceof PlanLimitExceededError && isFixed)
        throw new PlanLimitExceededError(error.quota, error.required, 0, 'videos');
      throw error;
    });
  logPlan(context.log, plan);
  const delivery = transcripts.deliver(plan, 'json');
  context.log['counts'] = delivery.summary;
  const { tool, subject, languages: wanted, range } = position;
  const remaining = { tool, subject, resource: plan.resource, languages: wanted, range };
  // No later cursor of this text is longer.
  const footerMax = footer({
    ...remaining,
    videoIds: plan.order.map(({ upload }) => upload.videoId),
    offset: Number.MAX_SAFE_INTEGER,
    crc32: 0xffff_ffff,
  });
  const form = {
    maxChars: charactersMax - footerMax.text.length,
    headingLevel,
    languages: position.languages,
    range: position.range,
  };
  const page = new TextPage(form, 'offset' in position ? position : undefined);
  const entries: Entry[] = [];
  try {
    for await (const event of delivery.events('listed')) {
      if (times.responseEnd.aborted) throw new CallCanceled();
      if (event.type === 'channel') page.head(listHead(event));
      if (event.type !== 'result') continue;
      await page.add(event.entry);
      entries.push(withoutText(event.entry));
      call.progress(entries.length, plan.order.length);
    }
  } catch (error) {
    // Nobody waits for the other videos.
    plan.call.disconnect();
    throw error;
  }
  const { next } = page;
  const videoIds = entries.map(({ videoId }) => videoId);
  const end =
    next &&
    footer({
      ...remaining,
      offset: next.offset,
      crc32: next.crc32,
      videoIds: videoIds.slice(videoIds.indexOf(next.videoId)),
    });
  return {
    text: end ? `${page.text}${end.text}` : page.text,
    resource: plan.resource,
    entries,
    summary: delivery.summary,
    cursor: end?.cursor ?? null,
  };

  /** The end of a page that is continued. */
  function footer(next: Position): { text: string; cursor: string } {
    const written = cursors.write(next, organizationId);
    // After a blank line, because the rule would otherwise make a heading of the last paragraph.
    return { text: `\n\n---\n\nThe text continues. Call ${tool} with the cursor ${written}\n`, cursor: written };
  }
}

/**
 * Looks up the video that a page continues, before quota is reserved. A video that is not cached is checked when it has been
 * fetched.
 *
 * @throws InvalidRequestError when its transcript has changed
 * @throws VideoFailedError when it has no transcript any more
 */
async function refuseStale(
  { videoIds, languages: wanted, offset, crc32 }: Position,
  cache: TranscriptCache,
): Promise<void> {
  if (crc32 === null) return;
  const [outcome] = await cache.getMany(videoIds.slice(0, 1), wanted);
  if (outcome?.ok && outcome.transcript.crc32 !== crc32) throw staleCursor();
  if (outcome?.ok === false && offset > 0) throw new VideoFailedError(entryError(outcome.failure));
}

function channelResult({ text, resource, entries, summary, cursor: next }: Page) {
  return { text, structured: { channelId: resource, videos: entries.map(videoOf), summary, cursor: next } };
}

const NO_BYTES = Buffer.alloc(0);

/** An entry without its text, so that the texts of a call are not held together. */
function withoutText(entry: Entry): Entry {
  return entry.ok ? { ...entry, transcript: { ...entry.transcript, bytes: NO_BYTES } } : entry;
}

function videoOf(entry: Entry): z.input<typeof videoOutput> {
  const { videoId, metadata, ok } = entry;
  const { title, url, publishedAt, durationSeconds } = metadata;
  const common = { videoId, title, url, publishedAt, durationSeconds, ok };
  if (entry.ok) return { ...common, cached: entry.cached };
  const { code, message, retryable } = entry.error;
  return { ...common, cached: false, error: { code, message, retryable } };
}

/** Names a channel in a cursor, in fewer characters than its URL can have. */
function digest(reference: string): string {
  return createHash('sha256').update(reference).digest('base64url').slice(0, 16);
}

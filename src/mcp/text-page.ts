import { z } from 'zod';
import type { Segment, Transcript } from '../domain/transcript.js';
import { VIDEO_ID } from '../domain/references/video-reference.js';
import type { RequestContext } from '../http/server/request-context.js';
import { fromStored, storedForm, type Wanted } from '../http/routes/validation.js';
import { textFormOf } from '../transcripts/call-plan.js';
import { inflate, readTranscript, type TranscriptText } from '../transcripts/cache/transcript-text.js';
import { chunked } from '../transcripts/formats/chunks.js';
import {
  codeSpan,
  failureLine,
  listHead,
  videoHead,
  videoNotes,
  videoText,
  type TextForm,
} from '../transcripts/formats/markdown.js';
import { givenVideos, type VideoSource } from '../transcripts/sources/video-list.js';
import { TextFields } from '../transcripts/dto/transcripts-query.dto.js';
import type { Summary } from '../transcripts/dto/transcripts-response.dto.js';
import type { Entry } from '../transcripts/delivery/transcript-events.js';
import { costLine, type ToolServices } from './tools/tool.js';
import { invalidField, type InvalidRequestError } from '../domain/errors.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';

/** Where a result goes on, and of which tool. */
interface Place {
  tool: string;
  [field: string]: unknown;
}

/** A cursor is the place itself, so that any replica continues from it. Who changes it reads only what they may read. */
export function writeCursor(place: Place): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** @throws InvalidRequestError when the cursor is malformed, or of another tool */
export function readCursor<P extends Place>(cursor: string, tool: P['tool'], places: z.ZodType<P>): P {
  const place = fromJson(Buffer.from(cursor, 'base64url'), places);
  if (place?.tool === tool) return place;
  throw invalidCursor();
}

export function invalidCursor(): InvalidRequestError {
  return invalidField('cursor', 'cursor is invalid. Send the cursor of the last result unchanged, to the same tool.');
}

export const CURSOR_VIDEOS_MAX = 10;

const second = z.number().min(0);

const positionSchema = z
  .looseObject({
    tool: z.enum(['get_channel_transcripts', 'get_video_transcript']),
    /** The ID of the channel or the video that the call is recorded by. */
    resource: z.string().regex(/^(?:UC[\w-]{22}|[\w-]{11})$/),
    /** The videos that remain, the current one first. */
    videoIds: z.array(z.string().regex(VIDEO_ID)).min(1).max(CURSOR_VIDEOS_MAX),
    /** Seconds; the end is null for the end of the video. */
    range: z.tuple([second, second.nullable()]),
    /** Pieces of the current video's text that were sent. */
    skip: z.int().min(0),
  })
  // The tool for one video is on every plan, those for more are not.
  .refine(({ tool, resource, videoIds }) => tool !== 'get_video_transcript' || videoIds.join() === resource)
  .transform((position) => ({ ...position, ...fromStored(TextFields, position) }));

/** Where a text continues that did not fit into one result. */
export type Position = z.infer<typeof positionSchema>;

interface PageStart extends Wanted<TextFields>, Pick<Position, 'range'> {
  source: VideoSource;
  skip?: Position['skip'];
}

function pageAt(position: Position): PageStart {
  return { source: givenVideos(position.videoIds, position.resource), ...position };
}

interface TextRequest {
  tool: Position['tool'];
  /** Of the last page; undefined for the first one. */
  cursor?: string | undefined;
  /** Where the text starts without a cursor. */
  start: () => PageStart;
  /** The length of the text with its footer, at most. */
  maxChars: number;
}

/** As much of the texts as fits into one result. */
export interface TextResult {
  text: string;
  resource: string;
  /** The entries that were read for this page, without their texts. */
  entries: Entry[];
  summary: Summary;
  /** Continues the text; null at its end. */
  cursor: string | null;
}

/**
 * Fetches the videos of a text, or those that remain of it, and writes as much as fits.
 *
 * @throws InvalidRequestError for an invalid cursor, and the errors that refuse the call
 */
export async function readTexts(
  { tool, cursor, start, maxChars }: TextRequest,
  context: RequestContext,
  { transcripts }: ToolServices,
): Promise<TextResult> {
  const {
    source,
    skip = 0,
    range,
    ...begun
  } = cursor === undefined ? start() : pageAt(readCursor(cursor, tool, positionSchema));
  const request = storedForm(TextFields, begun);
  // A part of a text is divided into chunks after it is taken.
  const delivery = await transcripts.start({ source, ...request, chunkSeconds: null }, context);
  const { resource, order } = delivery.plan;
  const cursorAt = (videoIds: string[], skip: number) =>
    writeCursor({ tool, resource, videoIds, ...request, range, skip });
  const footer = (summary: Summary, next: string | null) => {
    const more = next === null ? '' : `\nThe text continues. Call \`${tool}\` with the cursor ${codeSpan(next)}\n`;
    // After a blank line, because the rule would otherwise make a heading of the last paragraph.
    return `\n\n---\n\n${costLine(summary)}\n${more}`;
  };
  const ids = order.map(({ upload }) => upload.videoId);
  const headingLevel = tool === 'get_channel_transcripts' ? 2 : 1;
  // No later cursor of this text is longer, and no count.
  const longest = footer(
    { total: ids.length, succeeded: ids.length, failed: ids.length, cached: ids.length, fetched: ids.length },
    cursorAt(ids, Number.MAX_SAFE_INTEGER),
  );
  const room = maxChars - longest.length;
  const page = new TextPage({ maxChars: room, headingLevel, ...textFormOf(request), range });
  const entries: Entry[] = [];
  let next: string | null = null;
  for await (const event of delivery.events('listed')) {
    if (event.type === 'channel') page.text += listHead(event);
    if (event.type !== 'result') continue;
    if (next === null) {
      const sent = await page.add(event.entry, entries.length === 0 ? skip : 0);
      if (sent !== undefined) next = cursorAt(ids.slice(entries.length), sent);
    }
    entries.push(event.entry);
  }
  const { summary } = delivery;
  return { text: page.text + footer(summary, next), resource, entries, summary, cursor: next };
}

export interface PageForm extends TextForm, Pick<Position, 'range'> {
  /** Without what follows the text of the page. */
  maxChars: number;
  headingLevel: 1 | 2;
}

/** The text of an entry is read when it is added, unless it was read before: then it is already in chunks. */
type PageEntry = Entry<TranscriptText | Transcript>;

/** The head of a video is not written with less room for its text than this. */
const TEXT_CHARACTERS_MIN = 200;
/** A text is divided between words, and a longer word never within an escaped character. */
const PIECES = /(?:\\.|[^\\]){0,199}\s|(?:\\.|[^\\]){1,200}/gsu;
/** A paragraph begins with the link to its second. */
const PARAGRAPH = /^\[/m;

/** One page of Markdown: as many pieces of the videos' texts as fit. */
export class TextPage {
  text = '';
  private isBegun = false;

  constructor(private readonly form: PageForm) {}

  /**
   * Adds the text of a video, or the part that fits.
   *
   * @param sent the pieces of it that earlier pages have; the failure of a video is always written
   * @param source what is written below its head
   * @returns how many pieces have been sent; undefined when all of them have
   */
  async add(entry: PageEntry, sent: number, source = ''): Promise<number | undefined> {
    const skip = entry.ok ? sent : 0;
    const pieces = await piecesOf(entry, this.form, source);
    for (const [index, piece] of [...pieces.entries()].slice(skip)) {
      const separator = index === 0 && this.text !== '' ? '\n' : '';
      const text = index > 0 && index === skip ? `… ${piece.trimStart()}` : `${separator}${piece}`;
      const room = this.form.maxChars - this.text.length;
      const needed = text.length + (index === 0 && entry.ok ? TEXT_CHARACTERS_MIN : 0);
      if (this.isBegun && needed > room) return index;
      // Every page has at least one piece, so that each cursor leads on.
      this.text += text.slice(0, Math.max(0, room));
      this.isBegun = true;
    }
    return undefined;
  }
}

async function piecesOf(entry: PageEntry, form: PageForm, source: string): Promise<string[]> {
  if (!entry.ok) return [failureLine(entry) + source];
  const { headingLevel, languages, range, chunkSeconds } = form;
  const { transcript: stored } = entry;
  // What was stored states which languages it has; what is fetched, those that were asked for.
  const languagesCount = 'deflated' in stored ? languages.length : Math.max(languages.length, stored.size);
  const languageLevel = languagesCount > 1 ? (headingLevel === 1 ? 2 : 3) : undefined;
  const transcript = 'deflated' in stored ? await partOf(stored, form, entry.metadata) : stored;
  const text = await videoText(entry.videoId, transcript, { languageLevel, chunkSeconds });
  const isEmptyPart = (range[0] > 0 || range[1] !== null) && !PARAGRAPH.test(text);
  const whole = videoNotes(entry) + (isEmptyPart ? '\nNothing is said in this part of the video.\n' : text);
  return [videoHead(entry, headingLevel) + source, ...(whole.match(PIECES) ?? [])];
}

/** What is said in the range of the page, in its chunks. */
async function partOf(
  text: TranscriptText,
  { range: [from, to], chunkSeconds }: PageForm,
  { chapters }: Entry['metadata'],
): Promise<Transcript> {
  const part = new Map<string, readonly Segment[]>();
  for (const [language, segments] of await readTranscript(await inflate(text))) {
    const wanted = segments.filter(
      ({ start, duration }) => (to === null || start < to) && (start >= from || start + duration > from),
    );
    part.set(language, wanted);
  }
  return chunkSeconds === undefined ? part : chunked(part, chunkSeconds, chapters ?? []);
}

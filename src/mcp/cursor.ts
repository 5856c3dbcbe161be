import { z } from 'zod';
import { InvalidRequestError } from '../domain/errors.js';
import { VIDEO_ID } from '../domain/video-reference.js';
import { languageCodes } from './tools/tool.js';

/** The most videos that a text is continued with. */
export const CURSOR_VIDEOS_MAX = 10;

const CHANNEL_ID = /^UC[A-Za-z0-9_-]{22}$/;
/** The digest of a reference to a channel. */
const CHANNEL_SUBJECT = /^[A-Za-z0-9_-]{16}$/;

const second = z.number().min(0);

const shape = z.strictObject({
  tool: z.enum(['get_channel_transcripts', 'get_video_transcript']),
  /** What the first call named: a digest of the channel as it was named, or the ID of the video. */
  subject: z.string(),
  /** The ID of the channel or the video that the call is recorded by. */
  resource: z.string(),
  /** The videos that remain, the current one first. */
  videoIds: z.array(z.string().regex(VIDEO_ID)).min(1).max(CURSOR_VIDEOS_MAX),
  languages: z.union([z.tuple([]), languageCodes]),
  range: z.tuple([second, second.nullable()]),
  /** Characters of the current video's text that were sent, and the checksum of its transcript. */
  offset: z.int().min(0),
  crc32: z.int().min(0).max(0xffff_ffff).nullable(),
});

const positionSchema = shape.refine(isConsistent);

/** Where a text continues that did not fit into one result. */
export type Position = z.infer<typeof positionSchema>;

/** A cursor is the position itself, so that any replica continues from it. Who changes it reads only what they may read. */
export function writeCursor(position: Position): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/**
 * @param expected the tool, and the channel or video if the caller names it again
 * @throws InvalidRequestError when the cursor is malformed, or of another call or tool
 */
export function readCursor(cursor: string, expected: { tool: string; subject?: string | undefined }): Position {
  const { data: position } = positionSchema.safeParse(parseJson(cursor));
  if (!position) throw invalidCursor();
  const { tool, subject = position.subject } = expected;
  if (position.tool !== tool || position.subject !== subject) throw invalidCursor();
  return position;
}

function isConsistent({
  tool,
  subject,
  resource,
  videoIds,
  range: [from, to],
  offset,
  crc32,
}: z.infer<typeof shape>): boolean {
  if (new Set(videoIds).size < videoIds.length || (to !== null && to <= from) || (offset > 0 && crc32 === null))
    return false;
  if (tool === 'get_channel_transcripts') return CHANNEL_SUBJECT.test(subject) && CHANNEL_ID.test(resource);
  return VIDEO_ID.test(subject) && resource === subject && videoIds.length === 1 && videoIds[0] === subject;
}

/** The text has changed since the cursor was issued. */
export function staleCursor(): InvalidRequestError {
  return new InvalidRequestError([
    { field: 'cursor', message: 'cursor is stale: the text has changed. Call the tool again without cursor.' },
  ]);
}

function invalidCursor(): InvalidRequestError {
  return new InvalidRequestError([
    {
      field: 'cursor',
      message:
        'cursor is invalid. Send the cursor of the last result unchanged, to the same tool and for the same channel or video.',
    },
  ]);
}

function parseJson(payload: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString());
  } catch {
    return undefined;
  }
}

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { InvalidRequestError } from '../domain/errors.js';
import { VIDEO_ID } from '../domain/video-reference.js';
import { languageCodes } from './language-codes.js';

/** Texts are cached for longer, so that the pages of one text do not usually cost more than the first. */
const LIFETIME_MS = 60 * 60 * 1000;
/** The clocks of two replicas differ by less. */
const CLOCK_DIFFERENCE_MS = 60 * 1000;
const TAG_BYTES = 12;
const KEY_BYTES = 32;
const PURPOSE = 'channel-transcripts: cursors of MCP';

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

const cursorSchema = z.tuple([z.number(), positionSchema]);

/**
 * Cursors that contain the position itself, so that any replica with the same secret continues from them. They are
 * authenticated for the organization that received them. A position is validated like the input of a call all the same,
 * because the secret may be guessable.
 */
export class Cursors {
  private readonly key: Buffer;

  /** @param secret the one that signs cache entries; cursors are signed with a key of their own that is derived from it */
  constructor(secret: Buffer) {
    this.key = Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES));
  }

  write(position: Position, organizationId: string): string {
    const payload = Buffer.from(JSON.stringify([Date.now() + LIFETIME_MS, position])).toString('base64url');
    return `${payload}.${this.tag(payload, organizationId)}`;
  }

  /**
   * @param expected the tool, and the channel or video if the caller names it again
   * @throws InvalidRequestError when the cursor is malformed, forged, of another call, tool or organization, or too old
   */
  read(cursor: string, organizationId: string, expected: { tool: string; subject?: string | undefined }): Position {
    const [payload = '', tag = '', ...more] = cursor.split('.');
    // Compared as text: decoding would ignore what follows the last whole byte.
    const [given, own] = [Buffer.from(tag), Buffer.from(this.tag(payload, organizationId))];
    if (more.length > 0 || given.length !== own.length || !timingSafeEqual(given, own)) throw invalidCursor();
    const parsed = cursorSchema.safeParse(parseJson(payload));
    if (!parsed.success) throw invalidCursor();
    const [expiresAtMs, position] = parsed.data;
    const { tool, subject = position.subject } = expected;
    if (position.tool !== tool || position.subject !== subject) throw invalidCursor();
    const remainingMs = expiresAtMs - Date.now();
    if (remainingMs > LIFETIME_MS + CLOCK_DIFFERENCE_MS) throw invalidCursor();
    if (remainingMs < 0) throw staleCursor();
    return position;
  }

  private tag(payload: string, organizationId: string): string {
    return createHmac('sha256', this.key)
      .update(`${organizationId.length}:${organizationId}:${payload}`)
      .digest()
      .subarray(0, TAG_BYTES)
      .toString('base64url');
  }
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

/** The text has changed since the cursor was issued, or the cursor is too old. */
export function staleCursor(): InvalidRequestError {
  return new InvalidRequestError([
    { field: 'cursor', message: 'cursor has expired, or the text has changed. Call the tool again without cursor.' },
  ]);
}

function invalidCursor(): InvalidRequestError {
  return new InvalidRequestError([
    {
      field: 'cursor',
      message:
        'cursor is invalid. Send the cursor of the last result unchanged, to the same tool and for the same channel or video, ' +
        'with a key of the same organization.',
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

import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { InvalidRequestError } from '../domain/errors.js';

/** Texts are cached for longer, so that the pages of one text do not usually cost more than the first. */
const LIFETIME_MS = 60 * 60 * 1000;
const TAG_BYTES = 12;

const positionSchema = z.strictObject({
  tool: z.string(),
  /** What the first call named: the channel or the video. */
  subject: z.string(),
  /** The ID of the channel or the video that the call is recorded by. */
  resource: z.string(),
  /** The videos that remain, the current one first. */
  videoIds: z.array(z.string()).min(1),
  languages: z.array(z.string()),
  range: z.tuple([z.number(), z.number().nullable()]),
  /** Characters of the current video's text that were sent, and the checksum of its transcript. */
  offset: z.int().min(0),
  crc32: z.int().nullable(),
});

/** Where a text continues that did not fit into one result. */
export type Position = z.infer<typeof positionSchema>;

const cursorSchema = z.tuple([z.number(), positionSchema]);

/**
 * Cursors that contain the position itself, so that any replica continues from them. They are authenticated for the
 * organization that received them. `CACHE_SECRET` signs them; without it a cursor can be forged only for an own call, which
 * is checked like any other.
 */
export class Cursors {
  constructor(private readonly secret: string | undefined) {}

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
    if (expiresAtMs < Date.now()) throw staleCursor();
    return position;
  }

  private tag(payload: string, organizationId: string): string {
    return createHmac('sha256', `mcp cursor ${organizationId} ${this.secret ?? ''}`)
      .update(payload)
      .digest()
      .subarray(0, TAG_BYTES)
      .toString('base64url');
  }
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

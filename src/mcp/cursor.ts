import type { z } from 'zod';
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

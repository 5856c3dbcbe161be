import { DomainError } from '../../domain/errors.js';
import { type Kind } from '../../http/routes/field.js';

/** A place in results: the number of one of them, and the random mark of its row, which proves that this database gave it. */
export interface ResultCursor {
  sequence: number;
  /** Null for the beginning, and in a cursor of version 1.0, which is the number alone. */
  mark: string | null;
}

const FORM = /^(0|[1-9][0-9]{0,14})(?:\.([A-Za-z0-9_-]{8}))?$/;

/** A field with a cursor. Version 1.0 wrote it as a number. */
export const CURSOR_KIND: Kind = {
  schema: { type: 'string', pattern: FORM.source },
  normalize: String,
  fault: (value) =>
    (typeof value === 'string' || typeof value === 'number') && FORM.test(String(value))
      ? undefined
      : 'must be the "next" value of a page or the "cursor" of a line',
};

/** @param text which `CURSOR_KIND` accepts */
export function readResultCursor(text: string): ResultCursor {
  const [, sequence, mark = null] = FORM.exec(text) ?? [];
  return { sequence: Number(sequence), mark };
}

export function writeResultCursor({ sequence, mark }: ResultCursor): string {
  return mark === null ? String(sequence) : `${sequence}.${mark}`;
}

/** Results after the cursor have expired, so that a reader would miss them. */
export class CursorExpiredError extends DomainError {
  /**
   * @param oldest the cursor before the oldest result that is stored
   * @param expired how many results after the cursor have expired
   */
  constructor(oldest: string, expired: number) {
    super(
      'results_expired',
      `${expired} results after this cursor have expired. Continue with after=${oldest}, before the oldest that is stored.`,
      { fields: { oldest, expired } },
    );
  }
}

/** The database was restored to a time before the cursor, so that a reader would miss what it has numbered again. */
export class CursorUnknownError extends DomainError {
  /** @param oldest the cursor before the oldest result that is stored */
  constructor(oldest: string) {
    super(
      'cursor_unknown',
      `The service does not know this cursor, for example because its database was restored. Continue with after=${oldest}: ` +
        'entries may come a second time, and none is skipped.',
      { fields: { oldest } },
    );
  }
}

/** What is stored of results, as far as it decides where a reader goes on. */
export interface ResultsBounds {
  last: number;
  /** The last one that has expired. */
  expired: ResultCursor;
  /** Of the result with the number of the reader's cursor; null when it is not stored. */
  markAtCursor: string | null;
}

/**
 * Where a reader goes on.
 *
 * @param after undefined for the oldest result that is stored
 * @throws CursorExpiredError | CursorUnknownError
 */
export function placeOf(after: ResultCursor | undefined, bounds: ResultsBounds): ResultCursor {
  const { last, expired, markAtCursor } = bounds;
  if (after === undefined) return expired;
  const { sequence, mark } = after;
  const oldest = writeResultCursor(expired);
  if (sequence < expired.sequence) throw new CursorExpiredError(oldest, expired.sequence - sequence);
  const stored = sequence === expired.sequence ? expired.mark : markAtCursor;
  // Where the former results and the present ones part cannot be known.
  if (sequence > last || (mark !== null && mark !== stored)) throw new CursorUnknownError(oldest);
  return { sequence, mark: stored };
}

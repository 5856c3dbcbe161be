import { DomainError } from '../../domain/errors.js';
import { type Kind } from '../../http/routes/field.js';

/** A place in results: the number of one of them, and the random mark of its row, which proves that this database gave it. */
export interface ResultCursor {
  sequence: number;
  /** Null for the beginning, and in a cursor of version 1.0, which is the number alone. */
  mark: string | null;
  /** Up to which number its reader knows what has expired: kept results are stored between those that have. */
  expired: number;
}

const FORM = /^(0|[1-9]\d{0,14})(?:\.([\w-]{8}))?(?:~([1-9]\d{0,14}))?$/;

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
  const [, sequence, mark = null, expired] = FORM.exec(text) ?? [];
  return { sequence: Number(sequence), mark, expired: Number(expired ?? sequence) };
}

export function writeResultCursor({ sequence, mark, expired }: ResultCursor): string {
  return `${sequence}${mark === null ? '' : `.${mark}`}${expired > sequence ? `~${expired}` : ''}`;
}

/** Results after the cursor have expired, so that a reader would miss them. */
export class CursorExpiredError extends DomainError {
  /**
   * @param oldest the cursor before the oldest result after it that is stored
   * @param expired how many results after the cursor have expired; 0 when only its own was deleted
   */
  constructor(oldest: string, expired: number) {
    const why =
      expired === 0 ? 'The result of this cursor was deleted.' : `${expired} results after this cursor have expired.`;
    super('results_expired', `${why} Continue with after=${oldest}, before the next one that is stored.`, {
      fields: { oldest, expired },
    });
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
  expired: { sequence: number; mark: string | null };
  /** The last one that is stored up to the reader's cursor. */
  stored: { sequence: number; mark: string | null } | null;
  /** How many have expired that the reader does not know of. */
  lost: number;
}

/** SQL: how many results up to `expired` have expired after the number that a parameter has; of a reader without a cursor none. */
export function lostAfter(parameter: string, expired: string, results: string): string {
  return `CASE WHEN ${expired} > ${parameter}::bigint THEN ${expired} - ${parameter}::bigint
    - (SELECT count(*) ${results} AND sequence > ${parameter}::bigint AND sequence <= ${expired}) ELSE 0 END::double precision`;
}

/**
 * Where a reader goes on.
 *
 * @param after undefined for the oldest result that is stored
 * @throws CursorExpiredError | CursorUnknownError
 */
export function placeOf(after: ResultCursor | undefined, { last, expired, stored, lost }: ResultsBounds): ResultCursor {
  const beginning = { sequence: 0, mark: null, expired: expired.sequence };
  if (after === undefined) return beginning;
  const { sequence, mark } = after;
  const known = [stored, expired].find((result) => result?.sequence === sequence);
  const isOther = known !== undefined && mark !== null && mark !== known?.mark;
  // Where the former results and the present ones part cannot be known.
  if (isOther || Math.max(sequence, after.expired) > last) throw new CursorUnknownError(writeResultCursor(beginning));
  const isDeleted = !known && mark !== null;
  // Nothing is stored between that and the cursor.
  if (lost > 0 || isDeleted) throw new CursorExpiredError(writeResultCursor({ ...beginning, ...stored }), lost);
  return { ...beginning, sequence, mark: known?.mark ?? null };
}

import type { Channel } from '../../domain/transcript.js';
import type { TranscriptText } from '../../transcripts/cache/transcript-text.js';
import { type KeptTextRow, textOfRow } from '../../transcripts/kept/kept-texts.js';
import type { Labels } from '../dto/labels.js';
import { writeResultCursor } from './cursor.js';

export interface ResultsRequest {
  limit: number;
  /** The `next` of the previous part; undefined to begin with the oldest entry that is stored. */
  after?: string | undefined;
}

export interface EntryFacts {
  /** Of a job: the place of the video in the list. */
  position?: number;
  /** Of the feed: whose the entry is. */
  subscriptionId?: string;
  channel?: Channel | null;
  labels?: Labels;
}

/** The entry of a video as it is stored: its JSON, deflated to a part of a gzip member. */
export interface StoredEntry {
  /** A reader goes on after it. */
  cursor: string;
  /** What a response states beside the entry. */
  facts: EntryFacts;
  text: TranscriptText;
}

/** A part of the results of a job, a subscription or a feed, in the order in which they became final. */
export interface ResultsPart {
  entries: StoredEntry[];
  /** The cursor before the first entry. */
  after: string;
  next: string;
  /** Whether more of them are stored. */
  hasMore: boolean;
  /** Whether as many rows were read as one request may read, so that its page ends here. */
  endsPage: boolean;
}

/** Bounds the memory of one read of results, which ends after the entry that exceeds it. */
export const READ_BYTES_MAX = 8 * 1024 * 1024;

export interface EntryRow extends KeptTextRow {
  sequence: number;
  mark: string | null;
}

/**
 * The entry of a row; none of the row that the statement returns for results without any.
 *
 * @param expired the number of the last result that has expired
 */
export function storedEntry(
  row: EntryRow | { [Name in keyof EntryRow]: null },
  expired: number,
  facts: EntryFacts,
): StoredEntry[] {
  if (row.sequence === null) return [];
  return [{ cursor: writeResultCursor({ ...row, expired }), facts, text: textOfRow(row) }];
}

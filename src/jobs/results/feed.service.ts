import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryWithDeadline } from '../../database/query-with-deadline.js';
import { invalidField } from '../../domain/errors.js';
import { Channel } from '../../domain/transcript.js';
import { fromJson } from '../../transcripts/cache/keyed-codec.js';
import type { TranscriptText } from '../../transcripts/cache/transcript-text.js';
import type { Labels } from '../dto/labels.js';
import { isWanted, wantedValues, type ListFilter } from '../list-filter.js';
import { type KeptTextRow, textOfRow } from '../../transcripts/kept/kept-texts.js';
import { lostAfter, placeOf, readResultCursor, writeResultCursor, type ResultsBounds } from './cursor.js';
import {
  READ_BYTES_MAX,
  storedEntry,
  type EntryRow,
  type ResultsPart,
  type ResultsRequest,
  type StoredEntry,
} from './results-part.js';

/** The rows of the log that one read looks through for those of a label or a channel. */
const SCANNED_MAX = 1_000;

/** Columns of the log are null for an organization without one. */
interface BoundsRow {
  last_sequence: number | null;
  expired_sequence: number | null;
  expired_mark: string | null;
  /** Up to the cursor. */
  stored_sequence: number | null;
  stored_mark: string | null;
  lost: number;
  /** The last row that was looked at. */
  scanned_sequence: number | null;
  scanned_mark: string | null;
  matched: number;
}

type FeedRow = BoundsRow &
  (
    | (EntryRow & { subscription_id: string; channel: string | null; labels: Labels })
    | { [Name in keyof EntryRow]: null }
  );

/**
 * $2 the number after which it begins, $3 up to which the reader knows what has expired, $4 count, $5 bytes, $6 rows of the log, $7 and $8
 * as `isWanted` has them.
 */
const FEED = `
  WITH log AS MATERIALIZED (
    SELECT last_sequence, expired_sequence, expired_mark,
           ${lostAfter('$3', 'expired_sequence', 'FROM log_entries WHERE organization_id = $1')} AS lost
      FROM organization_logs WHERE organization_id = $1
  ), scanned AS MATERIALIZED (
    SELECT sequence, mark, job_id, position FROM log_entries
      WHERE organization_id = $1 AND sequence > $2::bigint ORDER BY sequence LIMIT $6
  ), matching AS MATERIALIZED (
    SELECT scanned.*, octet_length(video.entry) AS bytes
      FROM scanned JOIN jobs job ON job.id = scanned.job_id AND job.deleted_at IS NULL AND ${isWanted('$7', '$8')}
        JOIN job_videos video ON video.job_id = scanned.job_id AND video.position = scanned.position AND video.entry IS NOT NULL
      ORDER BY scanned.sequence LIMIT $4
  ), page AS (
    SELECT *, sum(bytes) OVER (ORDER BY sequence) - bytes AS bytes_before FROM matching
  ), entries AS (
    SELECT page.sequence::double precision AS sequence, page.mark, video.entry, video.entry_bytes, video.entry_crc,
           job.id AS subscription_id, job.channel, job.labels
      FROM page JOIN jobs job ON job.id = page.job_id
        JOIN job_videos video ON video.job_id = page.job_id AND video.position = page.position
      WHERE page.bytes_before < $5
  )
  SELECT log.last_sequence::double precision, log.expired_sequence::double precision, log.expired_mark,
         stored.sequence::double precision AS stored_sequence, stored.mark AS stored_mark,
         coalesce(log.lost, 0) AS lost,
         reached.sequence::double precision AS scanned_sequence, reached.mark AS scanned_mark,
         (SELECT count(*)::integer FROM matching) AS matched, entries.*
    FROM (SELECT) one LEFT JOIN log ON true LEFT JOIN entries ON true
      LEFT JOIN (SELECT sequence, mark FROM log_entries WHERE organization_id = $1 AND sequence <= $2::bigint
                   ORDER BY sequence DESC LIMIT 1) stored ON true
      LEFT JOIN (SELECT sequence, mark FROM scanned ORDER BY sequence DESC LIMIT 1) reached ON true
    ORDER BY entries.sequence`;

/** Which of the newest entries to find. */
interface NewestFilter {
  subscription: string | null;
  label: string | null;
}

/** One of the newest entries, whose text is read later. */
export interface NewestEntry {
  subscriptionId: string;
  position: number;
  mark: string;
  videoId: string;
  decidedAt: Date;
  channel: Channel | null;
}

/** Entries with a transcript that a reader of feeds gets. */
const NEWEST_MAX = 50;

const IS_SHOWN = "job.deleted_at IS NULL AND video.state = 'succeeded'";

/** $1 organization, $2 subscription, $3 label as `isWanted` has it, $4 count, $5 rows of the log. A filter is of few subscriptions. */
const NEWEST = `
  WITH candidates AS MATERIALIZED (
    (SELECT job_id, position FROM (
        SELECT * FROM log_entries WHERE organization_id = $1 AND $2::text IS NULL AND $3::jsonb IS NULL ORDER BY sequence DESC LIMIT $5) log
      JOIN jobs job ON job.id = log.job_id JOIN job_videos video USING (job_id, position)
      WHERE ${IS_SHOWN} ORDER BY log.sequence DESC LIMIT $4)
    UNION ALL
    SELECT job.id, video.position FROM jobs job CROSS JOIN LATERAL (
        SELECT position FROM job_videos
          WHERE job_id = job.id AND sequence IS NOT NULL AND state = 'succeeded' ORDER BY sequence DESC LIMIT $4) video
      WHERE job.organization_id = $1 AND job.check_seconds IS NOT NULL AND ($2::text IS NOT NULL OR $3::jsonb IS NOT NULL)
        AND ($2::text IS NULL OR job.id = $2) AND ${isWanted('$3', 'NULL')}
  )
  SELECT job.id AS "subscriptionId", position, video.mark, video.video_id AS "videoId", video.decided_at AS "decidedAt", job.channel
    FROM candidates JOIN jobs job ON job.id = candidates.job_id JOIN job_videos video USING (job_id, position)
    WHERE ${IS_SHOWN}
    ORDER BY video.decided_at DESC, job.id, video.sequence DESC LIMIT $4`;

/** $1 the subscription, $2 the place in its list. */
const TEXT = `
  SELECT entry, entry_bytes, entry_crc FROM job_videos WHERE job_id = $1 AND position = $2 AND entry IS NOT NULL`;

/** Reads the feed of an organization: the entries of all of its subscriptions, in the order in which they became final. */
@Injectable()
export class FeedService {
  constructor(private readonly database: DataSource) {}

  /**
   * Reads a part of the feed. With a filter it can have fewer entries than the limit, or none, before the end.
   *
   * @throws CursorExpiredError | CursorUnknownError | InvalidRequestError when the cursor is the number of a subscription
   */
  async read(organizationId: string, { limit, after, ...filter }: ResultsRequest & ListFilter): Promise<ResultsPart> {
    const cursor = after === undefined ? undefined : readResultCursor(after);
    if (cursor && cursor.mark === null && cursor.sequence > 0)
      throw invalidField('after', 'after must be the "next" value of a page of the feed, or 0.');
    const place = [cursor?.sequence ?? 0, cursor?.expired ?? null];
    const values = [organizationId, ...place, limit, READ_BYTES_MAX, SCANNED_MAX, ...wantedValues(filter)];
    const rows = await queryWithDeadline<[FeedRow, ...FeedRow[]]>(this.database, FEED, values);
    const [first] = rows;
    const bounds = boundsOf(first);
    const begin = placeOf(cursor, bounds);
    const entries = rows.flatMap((row) => (row.sequence === null ? [] : feedEntry(row, begin.expired)));
    const isWhole = entries.length === first.matched && first.matched < limit;
    const { sequence, mark } = isWhole
      ? { sequence: first.scanned_sequence, mark: first.scanned_mark }
      : (rows.at(-1) ?? first);
    const end = sequence === null ? begin : { ...begin, sequence, mark };
    // What follows the last one that is stored has expired.
    const hasMore = first.scanned_sequence !== null && end.sequence < bounds.last;
    return { entries, after: writeResultCursor(begin), next: writeResultCursor(end), hasMore, endsPage: isWhole };
  }

  /** Finds the newest entries that have a transcript, newest first. */
  async newest(organizationId: string, { subscription, label }: NewestFilter): Promise<NewestEntry[]> {
    const [wantedLabel] = wantedValues({ label: label ?? undefined });
    const values = [organizationId, subscription, wantedLabel, NEWEST_MAX, SCANNED_MAX];
    type Row = Omit<NewestEntry, 'channel'> & { channel: string | null };
    const rows = await queryWithDeadline<Row[]>(this.database, NEWEST, values);
    return rows.map((row) => ({ ...row, channel: channelOf(row.channel) }));
  }

  /** Reads the text of an entry; undefined when it was deleted meanwhile. */
  async text({ subscriptionId, position }: NewestEntry): Promise<TranscriptText | undefined> {
    const [row] = await queryWithDeadline<KeptTextRow[]>(this.database, TEXT, [subscriptionId, position]);
    return row && textOfRow(row);
  }
}

function boundsOf(row: BoundsRow): ResultsBounds {
  const { stored_sequence: sequence, stored_mark: mark } = row;
  return {
    last: row.last_sequence ?? 0,
    expired: { sequence: row.expired_sequence ?? 0, mark: row.expired_mark },
    stored: sequence === null ? null : { sequence, mark },
    lost: row.lost,
  };
}

function feedEntry(row: Extract<FeedRow, EntryRow>, expired: number): StoredEntry[] {
  const { subscription_id: subscriptionId, channel: stored, labels } = row;
  return storedEntry(row, expired, { subscriptionId, channel: channelOf(stored), labels });
}

const channelOf = (stored: string | null): Channel | null =>
  (stored !== null && fromJson(Buffer.from(stored), Channel)) || null;

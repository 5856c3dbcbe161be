import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../../config/environment.js';
import { Channel, Playlist, Upload } from '../../domain/transcript.js';
import { fromJson } from '../../transcripts/cache/keyed-codec.js';
import { CHANGED, logStateChange, type Changed } from '../job-row.js';
import { CLAIM_MARGIN_SECONDS } from '../work/slice.js';
import type { CheckedPage, CheckFailure, ClaimedSource } from './check.js';
import { type KnownUpload, LISTING_DELAY_MS, type WaitingStart, type Walk } from './walk.js';

interface SourceRow extends Pick<
  ClaimedSource,
  'id' | 'kind' | 'continuation' | 'fingerprint' | 'setbacks' | 'reason'
> {
  is_check: boolean;
  header: string | null;
  created_at: Date;
  seen_at: Date | null;
  seen_position: number | null;
  sees_all: boolean;
  for_starts: boolean;
  found: number;
  listed: number;
  known_hidden: number | null;
  starts: WaitingStart[];
  unread_seconds: number;
  now: Date;
}

/** A list ends where it says, although it states more videos, when it ended so three times within an hour at least. */
const CLAIM = `
  SELECT (result.source).*, is_check, clock_now() AS now,
         coalesce(extract(epoch FROM clock_now() - (result.source).unread_since), 0)::double precision AS unread_seconds,
         CASE WHEN (result.source).hidden_reads >= 2 AND (result.source).hidden_since <= clock_now() - interval '1 hour'
              THEN (result.source).hidden END AS known_hidden,
         CASE WHEN is_check THEN source_starts(result.source) ELSE '[]' END AS starts,
         (SELECT coalesce(max(rank), 0) FROM source_uploads
            WHERE source_id = (result.source).id AND rank IS NOT NULL AND (result.source).continuation IS NOT NULL) AS listed
    FROM source_claim($1, $2, $3, $4) result`;

const TURN = `SELECT ${CHANGED} FROM sources LEFT JOIN LATERAL source_turn(sources.id) result ON true WHERE sources.id = $1 AND claim = $2`;
const TURN_REPEAT_SECONDS = 30;

/** The tables of the sources, as workers claim and store checks. Every change is one statement. */
@Injectable()
export class SourceRepository {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /**
   * Claims the source that is next; undefined when none is due.
   *
   * @param organizationId whose subscriptions are meant; null for those of all organizations
   * @param withLists false for turns of subscriptions only
   */
  async claim(organizationId: string | null, withLists = true): Promise<ClaimedSource | undefined> {
    const claim = randomUUID();
    const leaseSeconds = this.environment.REQUEST_DEADLINE_SECONDS + CLAIM_MARGIN_SECONDS;
    const values = [claim, leaseSeconds, organizationId, withLists];
    const [row] = await this.database.query<SourceRow[]>(CLAIM, values);
    if (!row) return undefined;
    const {
      id,
      kind,
      continuation,
      fingerprint,
      setbacks,
      reason,
      is_check: isCheck,
      unread_seconds: unreadSeconds,
    } = row;
    const json = Buffer.from(row.header ?? '');
    const header = (kind === 'channel' ? fromJson(json, Channel) : fromJson(json, Playlist)) ?? null;
    const source = { id, kind, claim, isCheck, header, continuation, fingerprint, setbacks, reason, unreadSeconds };
    return { ...source, nowMs: row.now.getTime(), walk: walkOf(row) };
  }

  /** The uploads of a page that the source has. */
  async knownUploads({ id }: ClaimedSource, uploads: readonly Upload[]): Promise<Map<string, KnownUpload>> {
    const rows = await this.database.query<{ video_id: string; upload: string | null; seen: boolean }[]>(
      `SELECT video_id, upload, coalesce(first_position <= seen_position, false) AS seen
         FROM source_uploads found JOIN sources ON sources.id = source_id
         WHERE source_id = $1 AND video_id = ANY ($2)`,
      [id, uploads.map(({ videoId }) => videoId)],
    );
    return new Map(
      rows.map(({ video_id, upload, seen }) => {
        const listed = upload === null ? undefined : fromJson(Buffer.from(upload), Upload);
        return [video_id, { seen, listed }];
      }),
    );
  }

  /** Stores a page of a check. @returns false when the claim was lost */
  async commitPage({ id, claim }: ClaimedSource, { checked, header, next, ...page }: CheckedPage): Promise<boolean> {
    const { added, changed, ranked, decided, end, seesAll, forStarts } = checked;
    const states = new Map(added.map(({ upload, ...state }) => [upload.videoId, state]));
    const stored = new Map(
      [...added.map(({ upload }) => upload), ...changed, ...ranked].map((each) => [each.videoId, each]),
    );
    const moved = new Set(changed.map(({ videoId }) => videoId));
    const places = new Set(ranked.map(({ videoId }) => videoId));
    const uploads = [...stored.values()].map((upload) => {
      const { videoId, kind, publishedAt } = upload;
      const { state, isOld } = states.get(videoId) ?? { state: moved.has(videoId) ? 'new' : 'seen', isOld: false };
      const isRanked = places.has(videoId);
      // Only what is read later is stored.
      const json = state === 'seen' && !isRanked ? null : JSON.stringify(upload);
      return {
        video_id: videoId,
        state,
        is_old: isOld,
        upload: json,
        kind,
        published_at: publishedAt,
        ranked: isRanked,
      };
    });
    const values = {
      ...page,
      header: header && JSON.stringify(header),
      ...{ uploads, found: added.length, decided, end, continuation: next, sees_all: seesAll, for_starts: forStarts },
    };
    return this.commit('source_commit_page', id, claim, values);
  }

  /** Stores that a check has read nothing. @returns false when the claim was lost */
  async commitFailure({ id, claim }: ClaimedSource, { delaySeconds, ...failure }: CheckFailure): Promise<boolean> {
    return this.commit('source_commit_failure', id, claim, { ...failure, delay_seconds: delaySeconds });
  }

  /** Moves the subscriptions of a channel, which was found by its name, to its source. @returns false when the claim was lost */
  async resolve({ id, claim }: ClaimedSource, channel: Channel): Promise<boolean> {
    const [row] = await this.database.query<{ held: boolean }[]>('SELECT source_resolve($1, $2, $3, $4) AS held', [
      id,
      claim,
      channel.id,
      JSON.stringify(channel),
    ]);
    return row?.held === true;
  }

  /** Lets some subscriptions take what was found. @returns false when the claim was lost */
  async turn({ id, claim }: ClaimedSource): Promise<boolean> {
    const rows = await this.database.query<(Changed | { id: null })[]>(TURN, [id, claim]);
    for (const row of rows) if (row.id !== null) logStateChange('source', row);
    return rows.length > 0;
  }

  /** A turn has failed, and is repeated later. Nothing was asked of the platform, so that the next check stays as it is. */
  async postponeTurn({ id, claim }: ClaimedSource): Promise<void> {
    const values = [id, claim, TURN_REPEAT_SECONDS];
    await this.database.query(
      `UPDATE sources SET spread_at = clock_now() + make_interval(secs => $3), claim = NULL, claimed_until = NULL
         WHERE id = $1 AND claim = $2`,
      values,
    );
  }

  private async commit(by: string, id: string, claim: string, values: object): Promise<boolean> {
    const statement = `SELECT ${by}($1, $2, $3) AS held`;
    const [row] = await this.database.query<{ held: boolean }[]>(statement, [id, claim, JSON.stringify(values)]);
    return row?.held === true;
  }
}

function walkOf(row: SourceRow): Walk {
  const { kind, seen_position: seenPosition, created_at: createdAt, seen_at: seenAt, starts, found, listed } = row;
  // Of a channel that listed nothing, no seen upload shows which later one is new.
  const toleranceMs = seenPosition === 0 ? LISTING_DELAY_MS : 0;
  return {
    ...{ kind, starts, listed, isFirst: seenPosition === null, forStarts: row.for_starts, seesAll: row.sees_all },
    ...{ createdAtMs: createdAt.getTime() - toleranceMs, seenAtMs: (seenAt ?? createdAt).getTime() },
    ...{ added: row.continuation === null ? 0 : found, hidden: row.known_hidden },
  };
}

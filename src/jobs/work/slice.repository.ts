import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../../config/environment.js';
import { inTurn } from '../../database/query-with-deadline.js';
import { PLANS, planIncludes, type Plan } from '../../domain/plan.js';
import { unlistedVideo, VIDEO_FAILURE_CODES, Upload } from '../../domain/transcript.js';
import { fromJson } from '../../transcripts/cache/keyed-codec.js';
import { keptParameters } from '../../transcripts/kept/kept-text.js';
import { KeptTexts } from '../../transcripts/kept/kept-texts.js';
import type { JobState, JobReason } from '../job.js';
import { CHANGED, logChange, type Changed, type ChangedJob } from '../job-row.js';
import {
  CLAIM_MARGIN_SECONDS,
  listRetrySeconds,
  type ClaimedSlice,
  type ListedPage,
  type PendingVideo,
  type SliceOutcome,
  type VideoResults,
} from './slice.js';

/** The archive jobs, or the subscriptions, in one state. */
export interface JobCounts {
  is_subscription: boolean;
  state: JobState;
  reason: JobReason | null;
  jobs: number;
  stored_bytes: number;
}

export interface WaitingJobs {
  oldest_due_seconds: number;
  /** The highest number of consecutive slices that failed, of an archive job that is neither finished nor paused. */
  setbacks_max: number;
}

type ClaimedRow = Changed & {
  plan: Plan | null;
  keeps: boolean;
  kind: ClaimedSlice['kind'];
  now: Date;
};

/** Rows that one statement removes: some megabytes, well within the statement timeout. */
const REMOVED_ROWS_MAX = 200;

/** The tables of the jobs, as workers claim and store slices. Every change is one statement. */
@Injectable()
export class SliceRepository {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly texts: KeptTexts,
  ) {}

  /**
   * Claims the slice that is next; undefined when none is due.
   *
   * @param organizationId null for the jobs of all organizations
   * @param withLists false for slices of videos only
   */
  async claim(organizationId: string | null, withLists = true): Promise<ClaimedSlice | undefined> {
    const claim = randomUUID();
    const [row] = await this.database.query<ClaimedRow[]>(
      `SELECT ${CHANGED}, CASE WHEN organization.deleted_at IS NULL THEN organization.plan END AS plan, organization.keeps,
              coalesce(job_slice_kind(result.job, $4), 'videos') AS kind, clock_now() AS now
         FROM job_claim($1, $2, $3, $4) result JOIN organizations organization ON organization.id = (result.job).organization_id`,
      [claim, this.environment.REQUEST_DEADLINE_SECONDS + CLAIM_MARGIN_SECONDS, organizationId, withLists],
    );
    if (!row) return undefined;
    const { key_id: keyId, plan, keeps, kind, continuation, setbacks } = row;
    const changed = logChange('claim', row);
    const facts = { nowMs: row.now.getTime(), isSubscription: row.check_seconds !== null };
    return { ...changed, claim, kind, keyId, plan, keeps, continuation, setbacks, ...facts };
  }

  /**
   * Pending videos that may be tried now: the first ones in the channel's order, or one that shows whether the platform serves
   * the service. That is another one each time, because a single video can be refused for good.
   */
  async pendingVideos(jobId: string, { count, random }: { count: number; random: boolean }): Promise<PendingVideo[]> {
    const rows = await this.database.query<
      (Pick<PendingVideo, 'position' | 'retries'> & { video_id: string; upload: string; error_code: string | null })[]
    >(
      `SELECT position, video_id, upload, retries, error_code FROM job_videos
         WHERE job_id = $1 AND state = 'pending' AND (retry_at IS NULL OR is_due(retry_at, (
           SELECT job_longest(jobs) FROM jobs WHERE id = $1)))
         ORDER BY ${random ? 'random()' : 'position'} LIMIT $2`,
      [jobId, count],
    );
    return rows.map(({ position, video_id, upload, retries, error_code }) => {
      const lastCode = VIDEO_FAILURE_CODES.find((code) => code === error_code) ?? null;
      // A list of another version that cannot be read costs the metadata that only the list has.
      const listed = fromJson(Buffer.from(upload), Upload) ?? unlistedVideo(video_id);
      return { position, retries, lastCode, upload: listed };
    });
  }

  /** The first uploads of the list of a job, as they were listed. */
  async firstUploads(jobId: string): Promise<Upload[]> {
    const rows = await this.database.query<{ upload: string }[]>(
      'SELECT upload FROM job_videos WHERE job_id = $1 ORDER BY position LIMIT 100',
      [jobId],
    );
    return rows.flatMap(({ upload }) => fromJson(Buffer.from(upload), Upload) ?? []);
  }

  /**
   * Adds a page of the uploads to the job, without those that it has, and ends the slice.
   *
   * @returns undefined when the claim was lost
   */
  async commitPage(
    { job, claim, setbacks }: ClaimedSlice,
    { channel, playlist, uploads, next, incomplete, hidden, listEnd }: ListedPage,
  ): Promise<ChangedJob | undefined> {
    const page = {
      channel_id: channel?.id,
      channel: channel && JSON.stringify(channel),
      playlist: playlist && JSON.stringify(playlist),
      uploads: uploads.map((upload) => ({ video_id: upload.videoId, upload: JSON.stringify(upload) })),
      continuation: next,
      list_retry_seconds: incomplete ? listRetrySeconds(setbacks) : null,
      ...{ list_end: incomplete ? listEnd : null, hidden },
    };
    const statement = `SELECT ${CHANGED} FROM job_commit_page($1, $2, $3) result`;
    const [row] = await this.database.query<Changed[]>(statement, [job.id, claim, JSON.stringify(page)]);
    return row && logChange('slice', row);
  }

  /**
   * Ends a slice: charges what it fetched and stores its results, both or neither. Without the claim it releases the
   * reservation and stores nothing.
   *
   * @returns undefined when the claim was lost
   * @throws the driver's error: `SLICE_EXPIRED` as SQLSTATE when the reservation ended before the slice
   */
  async commitSlice(
    { job, claim, organizationId }: ClaimedSlice,
    outcome: SliceOutcome,
    results?: VideoResults,
  ): Promise<(ChangedJob & { charged: number }) | undefined> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const { reservation, fetched = 0, videos = [], entries = Buffer.alloc(0), kept } = results ?? {};
    const keep = results === undefined ? '' : ', library_keep(result.job, $7, $8, $9)';
    const statement = `SELECT result.charged, ${CHANGED}${keep} FROM job_commit_slice($1, $2, $3, $4, $5, $6) result`;
    const seconds = 'seconds' in outcome ? outcome.seconds : 0;
    const end = { outcome: outcome.type, seconds, restart_list: 'restartList' in outcome && outcome.restartList };
    const slice = JSON.stringify({ ...end, reservation_id: reservation?.id, fetched, videos });
    const values: unknown[] = [job.id, claim, slice, entries, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY];
    const parameters = kept && keptParameters(kept);
    if (results) values.push(parameters?.kept ?? null, parameters?.entries ?? null, this.texts.bytesMax);
    const [row] = await inTurn(this.database, organizationId, () =>
      this.database.query<(Changed & { charged: number })[]>(statement, values),
    );
    return row && { ...logChange('slice', row), charged: row.charged };
  }

  /** Cancels paused jobs of deleted organizations and lets paused jobs go on whose reason has ended. */
  async sweep(): Promise<ChangedJob[]> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const plans = PLANS.filter((plan) => planIncludes(plan, 'channel_archives'));
    const rows = await this.database.query<Changed[]>(`SELECT ${CHANGED} FROM job_sweep($1, $2, $3) result`, [
      plans,
      PLAN_FREE_MONTHLY,
      PLAN_PRO_MONTHLY,
    ]);
    return rows.map((row) => logChange('sweep', row));
  }

  /** Removes some expired or deleted results. @returns the number of rows, 0 when there are none */
  async removeBatch(): Promise<number> {
    // Each in a transaction of its own, because they lock jobs in another order.
    const removed = async (by: string): Promise<number> =>
      (await this.database.query<[{ removed: number }]>(`SELECT ${by}($1) AS removed`, [REMOVED_ROWS_MAX]))[0].removed;
    return (await removed('job_remove_batch')) + (await removed('log_remove_batch'));
  }

  /** Counts all jobs, which reads the whole table: about 25 ms for 50,000 of them. */
  counts(): Promise<JobCounts[]> {
    return this.database.query<JobCounts[]>(
      `SELECT check_seconds IS NOT NULL AS is_subscription, state, reason, count(*)::integer AS jobs,
              sum(stored_bytes)::double precision AS stored_bytes
         FROM jobs WHERE deleted_at IS NULL GROUP BY 1, 2, 3`,
    );
  }

  waiting(): Promise<WaitingJobs[]> {
    return this.database.query<WaitingJobs[]>(
      `SELECT greatest(0, (SELECT extract(epoch FROM clock_now() - next_run_at) FROM jobs
                WHERE next_run_at <= (SELECT clock_now()) AND (claim IS NULL OR is_due(claimed_until, interval '2 hours'))
                ORDER BY next_run_at LIMIT 1), (SELECT extract(epoch FROM clock_now() - next_check_at) FROM sources
                WHERE next_check_at <= (SELECT clock_now()) AND (claim IS NULL OR is_due(claimed_until, interval '2 hours'))
                ORDER BY next_check_at LIMIT 1))::double precision AS oldest_due_seconds,
              coalesce((SELECT max(setbacks) FROM jobs
                WHERE finished_at IS NULL AND state <> 'paused' AND setbacks > 0 AND check_seconds IS NULL), 0) AS setbacks_max`,
    );
  }
}

import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { retryConflicts } from '../database/query-with-deadline.js';
import { PLANS, planIncludes } from '../domain/plan.js';
import { unlistedVideo, type Channel, type Upload } from '../domain/transcript.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import { uploadSchema } from '../transcripts/sources/channel-uploads.js';
import type { JobReason } from './job.js';
import {
  CLAIM,
  COMMIT_PAGE,
  COMMIT_SLICE,
  PENDING_VIDEOS,
  PROBE_VIDEOS,
  REMOVE_BATCH,
  SWEEP,
  type ChangedRow,
  type ClaimedRow,
  type PendingVideoRow,
} from './job-queries.js';
import { toChangedJob, type ChangedJob } from './job-rows.js';
import { JobStore } from './job-store.js';

/** How long a claim outlasts the deadline of its slice: as long as a reservation of the slice, which is made after it. */
const CLAIM_MARGIN_SECONDS = 15;
/** Videos that probes take turns with. */
const PROBED_VIDEOS = 25;
/** Rows that one statement removes: some megabytes, well within the statement timeout. */
const REMOVED_ROWS_MAX = 200;

/** A slice that this process runs. */
export interface ClaimedSlice extends ChangedJob {
  claim: string;
  /** The key that created the job. */
  keyId: string;
  /** False when the plan of the organization does not include jobs any more. */
  planIncludesJobs: boolean;
  organizationDeleted: boolean;
  /** Whether the list of the uploads is complete. */
  listed: boolean;
  /** Where the list goes on; undefined for its first page. */
  continuation: string | undefined;
  /** Consecutive slices that the platform did not serve. */
  setbacks: number;
  /** The time of the database. */
  now: Date;
}

export interface PendingVideo {
  position: number;
  upload: Upload;
  /** How often it was tried again. */
  retries: number;
}

/** What becomes of a pending video. */
export type VideoChange = { position: number } & (
  | { state: 'pending'; retryAfterSeconds: number }
  | { state: 'succeeded'; cached: boolean; length: number; bytes: number; crc: number }
  | { state: 'failed'; length: number; bytes: number; crc: number }
);

/** The SQLSTATE of a slice whose reservation ended before it was stored. */
export const SLICE_EXPIRED = 'CT001';

/** How a slice ends. */
export interface SliceEnd {
  /** The state of the job, unless it is complete or was canceled; by default it goes on. */
  change?: { state: 'paused' | 'failed' | 'canceled'; reason: JobReason | null };
  /** Until the next slice; undefined for at once, or for none while the job is paused. */
  delaySeconds?: number;
  setbacks?: number;
  /** Reads the list again from its first page. */
  restartList?: boolean;
}

/** Transcripts that a slice fetched for a reservation. */
export interface Settlement {
  id: string;
  fetched: number;
}

export interface SliceResults {
  settlements: readonly Settlement[];
  videos: readonly VideoChange[];
  /** The stored forms of the decided videos, joined in the order of their positions. */
  entries: Buffer;
}

const NO_RESULTS: SliceResults = { settlements: [], videos: [], entries: Buffer.alloc(0) };

/** The jobs as the workers claim and change them. Every operation is one statement. */
@Injectable()
export class SliceStore {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
    private readonly jobs: JobStore,
  ) {}

  /** Claims the slice that is next; undefined when none is due. */
  async claim(): Promise<ClaimedSlice | undefined> {
    const leaseSeconds = this.environment.REQUEST_DEADLINE_SECONDS + CLAIM_MARGIN_SECONDS;
    const claim = randomUUID();
    const [row] = await this.query<ClaimedRow>(CLAIM, [claim, leaseSeconds]);
    if (!row) return undefined;
    return {
      ...toChangedJob(row),
      claim,
      keyId: row.key_id,
      planIncludesJobs: planIncludes(row.plan, 'channel_archives'),
      organizationDeleted: row.organization_deleted,
      listed: row.listed_at !== null,
      continuation: row.continuation ?? undefined,
      setbacks: row.setbacks,
      now: row.now,
    };
  }

  /** The first pending videos that may be tried now, in the channel's order. */
  async pendingVideos(jobId: string, count: number): Promise<PendingVideo[]> {
    return (await this.query<PendingVideoRow>(PENDING_VIDEOS, [jobId, count])).map(toPendingVideo);
  }

  /**
   * One pending video, which shows whether the platform serves the service: one of those that failed the least, and another
   * one for each turn, because a single video can be refused for good.
   */
  async probeVideo(jobId: string, turn: number): Promise<PendingVideo[]> {
    const rows = await this.query<PendingVideoRow>(PROBE_VIDEOS, [jobId, PROBED_VIDEOS]);
    const row = rows[turn % rows.length];
    return row ? [toPendingVideo(row)] : [];
  }

  /**
   * Adds a page of the uploads to the job, without those that it has, and ends the slice.
   *
   * @param next the continuation; null at the end of the list
   * @returns undefined when the claim was lost
   */
  async commitPage(
    { job, claim }: ClaimedSlice,
    channel: Channel,
    uploads: readonly Upload[],
    next: string | null,
  ): Promise<ChangedJob | undefined> {
    const ids = uploads.map(({ videoId }) => videoId);
    const texts = uploads.map((upload) => JSON.stringify(upload));
    const values = [job.id, claim, channel.id, JSON.stringify(channel), ids, texts, next, this.jobs.resultsSeconds];
    const [row] = await this.query<ChangedRow>(COMMIT_PAGE, values);
    return row && toChangedJob(row);
  }

  /**
   * Ends a slice: charges what it fetched and stores its results, both or neither. Without the claim it releases the
   * reservations and stores nothing.
   *
   * @returns undefined when the claim was lost
   * @throws the driver's error: `SLICE_EXPIRED` as SQLSTATE when a reservation ended before the slice
   */
  async commitSlice(
    { job, claim }: ClaimedSlice,
    { change, delaySeconds, setbacks = 0, restartList = false }: SliceEnd,
    { settlements, videos, entries }: SliceResults = NO_RESULTS,
  ): Promise<(ChangedJob & { charged: number }) | undefined> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const values = [
      ...[job.id, claim, JSON.stringify(settlements), JSON.stringify(videos), entries],
      ...[change?.state ?? null, change?.reason ?? null, delaySeconds ?? null, setbacks, restartList],
      ...[this.jobs.resultsSeconds, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY],
    ];
    const [row] = await this.query<ChangedRow & { charged: number }>(COMMIT_SLICE, values);
    return row && { ...toChangedJob(row), charged: row.charged };
  }

  /** Cancels the jobs of deleted organizations and lets paused jobs go on whose reason has ended. */
  async sweep(): Promise<ChangedJob[]> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const plans = PLANS.filter((plan) => planIncludes(plan, 'channel_archives'));
    const values = [plans, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY, this.jobs.resultsSeconds];
    return (await this.query<ChangedRow>(SWEEP, values)).map(toChangedJob);
  }

  /** Removes some expired or deleted results. @returns the number of rows, 0 when there are none */
  async removeBatch(): Promise<number> {
    const [row] = await this.query<{ removed: number }>(REMOVE_BATCH, [REMOVED_ROWS_MAX]);
    return row?.removed ?? 0;
  }

  private query<Row>(statement: string, values: readonly unknown[]): Promise<Row[]> {
    return retryConflicts(() => this.database.query<Row[]>(statement, [...values]));
  }
}

function toPendingVideo({ position, video_id, upload, retries }: PendingVideoRow): PendingVideo {
  // A list of another version that cannot be read costs the metadata that only the list has.
  return { position, retries, upload: fromJson(Buffer.from(upload), uploadSchema) ?? unlistedVideo(video_id) };
}

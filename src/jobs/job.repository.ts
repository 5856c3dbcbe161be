import { createHash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline, retryConflicts } from '../database/query-with-deadline.js';
import type { Actor } from '../domain/caller.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import { PLANS, planIncludes } from '../domain/plan.js';
import { unlistedVideo, type Channel, type Upload } from '../domain/transcript.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { Payer } from '../transcripts/quota-reservations.js';
import { channelSchema, uploadSchema } from '../transcripts/sources/channel-uploads.js';
import * as sql from './job-statements.js';
import {
  checkAgainSeconds,
  type ChangedJob,
  type Job,
  type JobCursor,
  type JobRequest,
  type StoredEntry,
} from './job.js';
import { NO_RESULTS, type ClaimedSlice, type PendingVideo, type SliceEnd, type SliceResults } from './slice.js';

export interface FoundJob {
  job: Job;
  /** Whether the results have expired. */
  expired: boolean;
  /** Whether a slice is running; that of a canceled job still stores what it has fetched. */
  active: boolean;
}

type CreateOutcome = 'created' | 'known' | 'conflict' | 'too_many' | 'too_many_stored' | 'too_much_stored';
type CancelOutcome = 'changed' | 'unchanged' | 'finished';
type ResumeOutcome = CancelOutcome | 'expired' | 'too_many' | 'too_much_stored';

/** Finished and unfinished jobs of an organization whose results are stored; each costs time in every list. */
export const STORED_JOBS_MAX = 1_000;
const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_MEGABYTE = 1024 * 1024;

/** How long a claim outlasts the deadline of its slice: as long as a reservation of the slice, which is made after it. */
const CLAIM_MARGIN_SECONDS = 15;
/** Videos that probes take turns with. */
const PROBED_VIDEOS = 25;
/** Rows that one statement removes: some megabytes, well within the statement timeout. */
const REMOVED_ROWS_MAX = 200;

/** The tables of the jobs, as organizations read and change them and as workers claim and store slices. Every change is one statement. */
@Injectable()
export class JobRepository {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /** How long the results of a finished job are stored. */
  private get resultsSeconds(): number {
    return this.environment.JOB_RESULTS_TTL_HOURS * SECONDS_PER_HOUR;
  }

  /** Stored results of an organization beyond which it cannot have another unfinished job. */
  private get resultsBytesMax(): number {
    return this.environment.JOB_RESULTS_MAX_MEGABYTES * BYTES_PER_MEGABYTE;
  }

  /**
   * Creates a job, or finds the one that was created with the same idempotency key.
   *
   * @throws InvalidApiKeyError when the organization was deleted
   */
  async create(
    id: string,
    request: JobRequest,
    { organizationId, keyId }: Payer,
    idempotencyKey: string | undefined,
  ): Promise<{ outcome: CreateOutcome; job: Job | undefined }> {
    const { channel, languages, limit, since, onQuota } = request;
    const hash = createHash('sha256')
      .update(JSON.stringify([channel, languages, limit, since, onQuota]))
      .digest();
    const values = [
      ...[id, organizationId, keyId, idempotencyKey ?? null, hash, channel, languages, limit, since, onQuota],
      ...[this.environment.JOBS_PER_ORGANIZATION, STORED_JOBS_MAX, this.resultsBytesMax],
    ];
    const [row] = await queryWithDeadline<(sql.JobRow & { outcome: CreateOutcome })[]>(
      this.database,
      sql.CREATE,
      values,
    );
    if (!row) throw new InvalidApiKeyError();
    const { outcome } = row;
    return { outcome, job: outcome === 'created' || outcome === 'known' ? toJob(row) : undefined };
  }

  async find(organizationId: string, id: string): Promise<FoundJob | undefined> {
    const [row] = await queryWithDeadline<sql.FoundRow[]>(this.database, sql.FIND, [organizationId, id]);
    return row && { job: toJob(row), expired: row.expired, active: row.active };
  }

  /** Up to `count` jobs, newest first, after a place in the list. */
  async list(organizationId: string, count: number, after: JobCursor | undefined): Promise<Job[]> {
    const values = [organizationId, after?.createdAt ?? null, after?.id ?? null, count];
    const rows = await queryWithDeadline<sql.JobRow[]>(this.database, sql.LIST, values);
    return rows.map(toJob);
  }

  /**
   * Resolves to undefined for an unknown job.
   *
   * @param by the organization that the job belongs to, or the operator, who cancels a job of any organization
   */
  cancel(by: string | Actor, id: string): Promise<(ChangedJob & { outcome: CancelOutcome }) | undefined> {
    const operator = typeof by === 'string' ? undefined : by;
    const organizationId = typeof by === 'string' ? by : null;
    const actor = [operator?.kind ?? null, operator?.requestId ?? null];
    return this.change<CancelOutcome>(sql.CANCEL, [organizationId, id, this.resultsSeconds, ...actor]);
  }

  /** Resolves to undefined for an unknown job. */
  resume(organizationId: string, id: string): Promise<(ChangedJob & { outcome: ResumeOutcome }) | undefined> {
    const { JOBS_PER_ORGANIZATION } = this.environment;
    const values = [organizationId, id, JOBS_PER_ORGANIZATION, this.resultsBytesMax, this.resultsSeconds];
    return this.change<ResumeOutcome>(sql.RESUME, values);
  }

  /** @returns false for an unknown job */
  async delete(organizationId: string, id: string): Promise<boolean> {
    const [row] = await queryWithDeadline<{ deleted: boolean }[]>(this.database, sql.DELETE, [organizationId, id]);
    return row?.deleted === true;
  }

  /**
   * Up to `count` decided entries after a position, in the channel's order, of about `bytesMax` bytes.
   *
   * @param pastPending false to end before the first pending video
   * @returns undefined when the job does not exist or its results have expired
   */
  async entries(
    jobId: string,
    count: number,
    { after, pastPending, bytesMax }: { after: number; pastPending: boolean; bytesMax: number },
  ): Promise<{ entries: StoredEntry[]; more: boolean } | undefined> {
    const values = [jobId, after, !pastPending, count, bytesMax];
    const rows = await queryWithDeadline<(sql.EntryRow | sql.NoEntryRow)[]>(this.database, sql.ENTRIES, values);
    const [first] = rows;
    if (!first) return undefined;
    const entries = rows.flatMap((row) => {
      if (row.position === null) return [];
      const { position, entry: deflated, entry_bytes: jsonBytes, entry_crc } = row;
      return [{ position, text: { deflated, jsonBytes, crc32: Number(entry_crc) } }];
    });
    return { entries, more: (first.available ?? 0) > entries.length };
  }

  /** Whether a job has listed all videos, and those that are pending are only tried again later. */
  async awaitsRetries(id: string): Promise<boolean> {
    const [row] = await queryWithDeadline<{ waiting: boolean }[]>(this.database, sql.AWAITS_RETRIES, [id]);
    return row?.waiting === true;
  }

  /** The figures of all jobs, by state. */
  figures(): Promise<sql.FiguresRow[]> {
    return queryWithDeadline<sql.FiguresRow[]>(this.database, sql.FIGURES, []);
  }

  /** Claims the slice that is next; undefined when none is due. @param organizationId null for the jobs of all organizations */
  async claim(organizationId: string | null): Promise<ClaimedSlice | undefined> {
    const leaseSeconds = this.environment.REQUEST_DEADLINE_SECONDS + CLAIM_MARGIN_SECONDS;
    const claim = randomUUID();
    const [row] = await this.query<sql.ClaimedRow>(sql.CLAIM, [claim, leaseSeconds, organizationId]);
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
    return (await this.query<sql.PendingVideoRow>(sql.PENDING_VIDEOS, [jobId, count])).map(toPendingVideo);
  }

  /**
   * One pending video, which shows whether the platform serves the service: one of those that failed the least, and another
   * one for each turn, because a single video can be refused for good.
   */
  async probeVideo(jobId: string, turn: number): Promise<PendingVideo[]> {
    const rows = await this.query<sql.PendingVideoRow>(sql.PROBE_VIDEOS, [jobId, PROBED_VIDEOS]);
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
    const values = [job.id, claim, channel.id, JSON.stringify(channel), ids, texts, next, this.resultsSeconds];
    const [row] = await this.query<sql.ChangedRow>(sql.COMMIT_PAGE, values);
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
      ...[this.resultsSeconds, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY],
    ];
    const [row] = await this.query<sql.ChangedRow & { charged: number }>(sql.COMMIT_SLICE, values);
    return row && { ...toChangedJob(row), charged: row.charged };
  }

  /** Cancels the jobs of deleted organizations and lets paused jobs go on whose reason has ended. */
  async sweep(): Promise<ChangedJob[]> {
    const { PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY } = this.environment;
    const plans = PLANS.filter((plan) => planIncludes(plan, 'channel_archives'));
    const values = [plans, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY, this.resultsSeconds];
    return (await this.query<sql.ChangedRow>(sql.SWEEP, values)).map(toChangedJob);
  }

  /** Removes some expired or deleted results. @returns the number of rows, 0 when there are none */
  async removeBatch(): Promise<number> {
    const [row] = await this.query<{ removed: number }>(sql.REMOVE_BATCH, [REMOVED_ROWS_MAX]);
    return row?.removed ?? 0;
  }

  private async change<Outcome>(
    statement: string,
    values: readonly unknown[],
  ): Promise<(ChangedJob & { outcome: Outcome }) | undefined> {
    const [row] = await queryWithDeadline<(sql.ChangedRow & { outcome: Outcome })[]>(this.database, statement, values);
    return row && { outcome: row.outcome, ...toChangedJob(row) };
  }

  private query<Row>(statement: string, values: readonly unknown[]): Promise<Row[]> {
    return retryConflicts(() => this.database.query<Row[]>(statement, [...values]));
  }
}

function toChangedJob(row: sql.ChangedRow): ChangedJob {
  const { organization_id: organizationId, old_state: oldState, due_in_seconds: dueInSeconds } = row;
  return { job: toJob(row), organizationId, oldState, dueInSeconds };
}

function toJob(row: sql.JobRow): Job {
  const { total, succeeded, failed, cached, fetched } = row;
  return {
    id: row.id,
    state: row.state,
    reason: row.reason,
    channel: (row.channel !== null && fromJson(Buffer.from(row.channel), channelSchema)) || null,
    request: {
      channel: row.reference,
      languages: row.languages,
      limit: row.video_limit,
      since: row.since,
      onQuota: row.on_quota,
    },
    summary: { total, succeeded, failed, cached, fetched, pending: total - succeeded - failed },
    createdAt: row.created_at.toISOString(),
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
    expiresAt: row.expires_at?.toISOString() ?? null,
    checkAgainSeconds: checkAgainSeconds(row.state, row.due_in_seconds),
  };
}

function toPendingVideo({ position, video_id, upload, retries }: sql.PendingVideoRow): PendingVideo {
  // A list of another version that cannot be read costs the metadata that only the list has.
  return { position, retries, upload: fromJson(Buffer.from(upload), uploadSchema) ?? unlistedVideo(video_id) };
}

import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import type { Payer } from '../transcripts/quota-reservations.js';
import { type Job, type JobRequest, type StoredEntry } from './job.js';
import type { JobCursor } from './job-cursor.js';
import {
  AWAITS_RETRIES,
  CANCEL,
  CREATE,
  DELETE,
  ENTRIES,
  FIGURES,
  FIND,
  LIST,
  RESUME,
  type ChangedRow,
  type EntryRow,
  type NoEntryRow,
  type FiguresRow,
  type FoundRow,
  type JobRow,
} from './job-queries.js';
import { toChangedJob, toJob, type ChangedJob } from './job-rows.js';

export interface FoundJob {
  job: Job;
  /** Whether the results have expired. */
  expired: boolean;
  /** Whether a slice is running; that of a canceled job still stores what it has fetched. */
  active: boolean;
}

export type CreateOutcome = 'created' | 'known' | 'conflict' | 'too_many' | 'too_many_stored' | 'too_much_stored';
export type CancelOutcome = 'changed' | 'unchanged' | 'finished';
export type ResumeOutcome = CancelOutcome | 'expired' | 'too_many' | 'too_much_stored';

/** Finished and unfinished jobs of an organization whose results are stored; each costs time in every list. */
export const STORED_JOBS_MAX = 1_000;
const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_MEGABYTE = 1024 * 1024;

/** The jobs as their organizations read and change them. Every change is one statement. */
@Injectable()
export class JobStore {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /** How long the results of a finished job are stored. */
  get resultsSeconds(): number {
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
    const [row] = await queryWithDeadline<(JobRow & { outcome: CreateOutcome })[]>(this.database, CREATE, values);
    if (!row) throw new InvalidApiKeyError();
    const { outcome } = row;
    return { outcome, job: outcome === 'created' || outcome === 'known' ? toJob(row) : undefined };
  }

  async find(organizationId: string, id: string): Promise<FoundJob | undefined> {
    const [row] = await queryWithDeadline<FoundRow[]>(this.database, FIND, [organizationId, id]);
    return row && { job: toJob(row), expired: row.expired, active: row.active };
  }

  /** Up to `count` jobs, newest first, after a place in the list. */
  async list(organizationId: string, count: number, after: JobCursor | undefined): Promise<Job[]> {
    const values = [organizationId, after?.createdAt ?? null, after?.id ?? null, count];
    const rows = await queryWithDeadline<JobRow[]>(this.database, LIST, values);
    return rows.map(toJob);
  }

  /** Resolves to undefined for an unknown job. @param organizationId null for a job of any organization */
  cancel(organizationId: string | null, id: string): Promise<(ChangedJob & { outcome: CancelOutcome }) | undefined> {
    return this.change<CancelOutcome>(CANCEL, [organizationId, id, this.resultsSeconds]);
  }

  /** Resolves to undefined for an unknown job. */
  resume(organizationId: string, id: string): Promise<(ChangedJob & { outcome: ResumeOutcome }) | undefined> {
    const { JOBS_PER_ORGANIZATION } = this.environment;
    const values = [organizationId, id, JOBS_PER_ORGANIZATION, this.resultsBytesMax, this.resultsSeconds];
    return this.change<ResumeOutcome>(RESUME, values);
  }

  /** @returns false for an unknown job */
  async delete(organizationId: string, id: string): Promise<boolean> {
    const [row] = await queryWithDeadline<{ deleted: boolean }[]>(this.database, DELETE, [organizationId, id]);
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
    const rows = await queryWithDeadline<(EntryRow | NoEntryRow)[]>(this.database, ENTRIES, values);
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
    const [row] = await queryWithDeadline<{ waiting: boolean }[]>(this.database, AWAITS_RETRIES, [id]);
    return row?.waiting === true;
  }

  /** The figures of all jobs, by state. */
  figures(): Promise<FiguresRow[]> {
    return queryWithDeadline<FiguresRow[]>(this.database, FIGURES, []);
  }

  private async change<Outcome>(
    statement: string,
    values: readonly unknown[],
  ): Promise<(ChangedJob & { outcome: Outcome }) | undefined> {
    const [row] = await queryWithDeadline<(ChangedRow & { outcome: Outcome })[]>(this.database, statement, values);
    return row && { outcome: row.outcome, ...toChangedJob(row) };
  }
}

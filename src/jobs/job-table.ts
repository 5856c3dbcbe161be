import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import type { Payer } from '../quota/quota.service.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import type { TranscriptText } from '../transcripts/cache/transcript-text.js';
import { channelSchema } from '../transcripts/sources/channel-uploads.js';
import type { JobVariant } from './job-variants.js';
import type { JobState } from './job-states.js';
import type { JobCursor, JobReason } from './job.js';

/** A row of `jobs`, an archive job or a subscription, with the time until its next slice. */
export interface JobRow<Reason = JobReason> {
  id: string;
  organization_id: string;
  key_id: string;
  /** JSON. */
  request: string;
  state: JobState;
  reason: Reason | null;
  /** JSON. */
  channel: string | null;
  /** JSON. */
  playlist: string | null;
  continuation: string | null;
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
  setbacks: number;
  /** Null for an archive job. */
  check_seconds: number | null;
  /** Results of a subscription up to this one were removed. */
  expired_sequence: number;
  last_position: number;
  seen_position: number | null;
  seen_at: Date | null;
  sees_all: boolean;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  expires_at: Date | null;
  /** Null when the next slice has no time; 0 while a slice is running. */
  due_in_seconds: number | null;
}

/** The columns of a `JobRow`, of the row that the expression names. */
export function columnsOf(job: string): string {
  return `${job}.*, CASE WHEN ${job}.claimed_until > clock_now() THEN 0 WHEN ${job}.next_run_at IS NOT NULL
    THEN greatest(0, extract(epoch FROM ${job}.next_run_at - clock_now()))::double precision END AS due_in_seconds`;
}

/** The entry of a video as it is stored: its JSON, deflated to a part of a gzip member. */
export interface StoredEntry {
  /** Counts the results of the job, from 1, in the order in which they became final: a reader goes on after it. */
  sequence: number;
  /** The place of the video in the list, from 1. */
  position: number;
  text: TranscriptText;
}

/** A job or a subscription with a part of its results. */
export interface StoredResults<Dto> {
  job: Dto;
  /** Whether the results have expired. */
  expired: boolean;
  /** Whether the job can decide no more entries, unless it is resumed. The running slice of a canceled job still can. */
  isFinal: boolean;
  /** The sequence up to which results of a subscription were removed. */
  expiredSequence: number;
  entries: StoredEntry[];
}

type ResultRow<Row> = Row & { expired: boolean; is_final: boolean } & (
    | { sequence: number; position: number; entry: Buffer; entry_bytes: number; entry_crc: string }
    | { sequence: null; position: null; entry: null; entry_bytes: null; entry_crc: null }
  );

/** Why another job or subscription is refused. */
export type Refusal = 'conflict' | 'too_many' | 'too_many_stored' | 'too_much_stored';

/** A job or subscription that was created, or was with the same idempotency key. */
export type Created<Dto> = { outcome: 'created' | 'known'; job: Dto } | { outcome: Refusal };

/** The columns of a new job or subscription; those of one kind alone are passed on. */
interface NewRow {
  id: string;
  idempotency_key: string | undefined;
  /** JSON. */
  request: string;
  results_seconds: number;
}

export const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_MEGABYTE = 1024 * 1024;

/** Bounds the memory of one read of results, which ends after the entry that exceeds it. */
const READ_BYTES_MAX = 8 * BYTES_PER_MEGABYTE;

/** The archive jobs or the subscriptions in the table `jobs`, as organizations read and change them. Every change is one statement. */
@Injectable()
export abstract class JobTable<Dto, Row extends JobRow<string> = JobRow<string>> {
  protected abstract readonly variant: JobVariant;

  constructor(
    private readonly database: DataSource,
    protected readonly environment: Environment,
  ) {}

  protected abstract toDto(row: Row): Dto;

  /** Stored results of an organization beyond which it cannot have another unfinished job. */
  protected get resultsBytesMax(): number {
    return this.environment.JOB_RESULTS_MAX_MEGABYTES * BYTES_PER_MEGABYTE;
  }

  async find(organizationId: string, id: string): Promise<Dto | undefined> {
    const [row] = await this.query<Row>(
      `SELECT ${columnsOf('job')} FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`,
      ...[organizationId, id],
    );
    return row && this.toDto(row);
  }

  /** Up to `count`, newest first, after a place in the list. */
  async list(organizationId: string, count: number, after: JobCursor | undefined): Promise<Dto[]> {
    const rows = await this.query<Row>(
      `SELECT ${columnsOf('job')} FROM jobs job
         WHERE organization_id = $1 AND deleted_at IS NULL AND (check_seconds IS NOT NULL) = $5
           AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3::text))
         ORDER BY created_at DESC, id DESC LIMIT $4`,
      ...[organizationId, after?.createdAt ?? null, after?.id ?? null, count, this.variant === 'subscription'],
    );
    return rows.map((row) => this.toDto(row));
  }

  /**
   * Deletes a job or a subscription; its rows are removed later, in batches. An unfinished one ends without an event. Its
   * running slice keeps its claim, so that what it fetches is charged.
   *
   * @returns its ID; undefined for an unknown one
   */
  async delete(organizationId: string, id: string): Promise<string | undefined> {
    const [deleted] = await this.change<{ id: string }>(
      organizationId,
      `WITH deleted AS (
         UPDATE jobs SET deleted_at = clock_now(), idempotency_key = NULL,
             state = CASE WHEN finished_at IS NULL THEN 'canceled' ELSE state END
           WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING id
       ) SELECT id FROM deleted`,
      ...[organizationId, id],
    );
    return deleted?.id;
  }

  /**
   * Up to `count` entries after a sequence, in the order in which they became final. Their lengths are known without reading
   * them.
   *
   * @returns undefined for an unknown job
   */
  async results(
    organizationId: string,
    id: string,
    count: number,
    after: number,
  ): Promise<StoredResults<Dto> | undefined> {
    const rows = await this.query<ResultRow<Row>>(
      `WITH found AS MATERIALIZED (
         SELECT ${columnsOf('job')}, coalesce(expires_at <= clock_now(), false) AS expired,
                finished_at IS NOT NULL AND coalesce(claimed_until <= clock_now(), true) AS is_final
           FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
       ), decided AS (
         SELECT position, sum(octet_length(entry)) OVER (ORDER BY sequence) - octet_length(entry) AS bytes_before
           FROM (SELECT sequence, position, entry FROM job_videos WHERE job_id = $2
                   AND sequence > greatest($3, (SELECT expired_sequence FROM found))
                   ORDER BY sequence LIMIT $4) page
       )
       SELECT found.*, video.sequence, video.position, video.entry, video.entry_bytes, video.entry_crc
         FROM found LEFT JOIN (decided JOIN job_videos video ON video.job_id = $2 AND video.position = decided.position)
           ON decided.bytes_before < $5
         ORDER BY video.sequence`,
      ...[organizationId, id, after, count, READ_BYTES_MAX],
    );
    const [first] = rows;
    if (!first) return undefined;
    const entries = rows.flatMap((row) => {
      if (row.sequence === null) return [];
      const { sequence, position, entry: deflated, entry_bytes: jsonBytes, entry_crc } = row;
      return [{ sequence, position, text: { deflated, jsonBytes, crc32: Number(entry_crc) } }];
    });
    const { expired, is_final: isFinal, expired_sequence: expiredSequence } = first;
    return { job: this.toDto(first), expired, isFinal, expiredSequence, entries };
  }

  /**
   * Creates a job or a subscription, or finds the one that was created with the same idempotency key.
   *
   * @param unfinishedMax of jobs, or of subscriptions
   * @param storedMax of finished and unfinished jobs; null without a limit
   * @throws InvalidApiKeyError when the organization was deleted
   */
  protected async insert(
    newRow: NewRow,
    { organizationId, keyId }: Payer,
    unfinishedMax: number,
    storedMax: number | null,
  ): Promise<Created<Dto>> {
    const job = { ...newRow, organization_id: organizationId, key_id: keyId };
    const [row] = await this.change<Row & { outcome: Created<Dto>['outcome'] }>(
      organizationId,
      `SELECT result.outcome, ${columnsOf('(result.job)')} FROM job_create($1, $2, $3, $4) result`,
      ...[JSON.stringify(job), unfinishedMax, storedMax, this.resultsBytesMax],
    );
    if (!row) throw new InvalidApiKeyError();
    const { outcome } = row;
    return outcome === 'created' || outcome === 'known' ? { outcome, job: this.toDto(row) } : { outcome };
  }

  protected query<Result>(statement: string, ...values: unknown[]): Promise<Result[]> {
    return queryWithDeadline<Result[]>(this.database, statement, values);
  }

  /** Runs a statement that locks the organization or one of its jobs. @param organizationId null for an operator */
  protected change<Result>(organizationId: string | null, statement: string, ...values: unknown[]): Promise<Result[]> {
    return queryWithDeadline<Result[]>(this.database, statement, values, organizationId ?? undefined);
  }
}

/** The fields that jobs and subscriptions have. */
export function commonFields({ channel, total, succeeded, failed, cached, fetched, created_at }: JobRow<string>) {
  return {
    channel: (channel !== null && fromJson(Buffer.from(channel), channelSchema)) || null,
    summary: { total, succeeded, failed, cached, fetched, pending: total - succeeded - failed },
    createdAt: created_at.toISOString(),
  };
}

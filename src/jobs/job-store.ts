import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { bytesToBase62 } from '../domain/base62.js';
import type { Actor } from '../domain/caller.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import { IdempotencyConflictError } from '../http/routes/idempotency-key.js';
import { toPage, type Page, type PageRequest } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { TranscriptText } from '../transcripts/cache/transcript-text.js';
import { columnsOf, type JobRow } from './job-row.js';
import type { Variant } from './job-variants.js';
import { parseCursor, ResultsExpiredError, STORED_JOBS_MAX, StoredResultsLimitError, toCursor } from './job.js';
import { CursorExpiredError } from './subscription.js';

/** The entry of a video as it is stored: its JSON, deflated to a part of a gzip member. */
export interface StoredEntry {
  /** Counts the results of the job, from 1, in the order in which they became final: a reader goes on after it. */
  sequence: number;
  /** The place of the video in the list, from 1. */
  position: number;
  text: TranscriptText;
}

/** Which part of the results to read. */
export interface ResultsRequest {
  limit: number;
  /** The `next` of the previous part; undefined to begin with the oldest entry that is stored. */
  after?: number | undefined;
}

/** A part of the results of a job or a subscription, in the order in which they became final. */
export interface ResultsPart<Owner> {
  /** The job or the subscription at the time of the last entry. */
  owner: Owner;
  entries: StoredEntry[];
  /** The `after` of the next part. */
  next: number;
  /** Whether no entry can follow, unless the job is resumed. The running slice of a canceled job can still add some. */
  isEnd: boolean;
}

type ResultRow<Row> = Row & { expired_at: Date | null; is_final: boolean } & (
    | { sequence: number; position: number; entry: Buffer; entry_bytes: number; entry_crc: string }
    | { sequence: null; position: null; entry: null; entry_bytes: null; entry_crc: null }
  );

/** Why another job or subscription is refused. */
export type Refusal = 'conflict' | 'too_many' | 'too_many_stored' | 'too_many_videos' | 'too_much_stored';

type CreatedRow<Row> = Row & { outcome: 'created' | 'known' | Refusal };

/** The columns of a new job or subscription. */
interface NewRow {
  idempotency_key: string | undefined;
  /** JSON. */
  request: string;
  results_seconds: number;
  /** Of a job. */
  videos?: readonly string[] | undefined;
  /** Of a job. */
  video_limit?: number | null;
  /** Of a subscription. */
  check_seconds?: number;
}

const BYTES_PER_MEGABYTE = 1024 * 1024;

/** Bounds the memory of one read of results, which ends after the entry that exceeds it. */
const READ_BYTES_MAX = 8 * BYTES_PER_MEGABYTE;

const GET = `SELECT ${columnsOf('job')} FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`;

/** $2 whether subscriptions are listed, $3 and $4 the last one of the former page, $5 count. */
const LIST = `
  SELECT ${columnsOf('job')} FROM jobs job
    WHERE organization_id = $1 AND deleted_at IS NULL AND (check_seconds IS NOT NULL) = $2
      AND ($3::timestamptz IS NULL OR (created_at, id) < ($3, $4::text))
    ORDER BY created_at DESC, id DESC LIMIT $5`;

/** $3 and $4 who deletes it, and the name of that in the audit trail. */
const DELETE = `
  SELECT id, audit_record($3, $4, organization_id, id, request::jsonb - 'videosHash', NULL) FROM job_delete($1, $2)`;

/** $3 sequence before the first entry, $4 count, $5 bytes: the lengths of the entries are known without reading them. */
const RESULTS = `
  WITH found AS MATERIALIZED (
    SELECT ${columnsOf('job')}, CASE WHEN expires_at <= clock_now() THEN expires_at END AS expired_at,
           finished_at IS NOT NULL AND coalesce(is_due(claimed_until, interval '2 hours'), true) AS is_final
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
    ORDER BY video.sequence`;

/** $6 and $7 who creates it, and the name of that in the audit trail. */
const CREATE = `
  SELECT result.outcome, ${columnsOf('(result.job)')}, CASE WHEN result.outcome = 'created' THEN audit_record(
           $6, $7, (result.job).organization_id, (result.job).id, NULL, (result.job).request::jsonb - 'videosHash') END
    FROM job_create($1, $2, $3, $4, $5) result`;

/** The archive jobs or the subscriptions of organizations, in the table `jobs`. Every change is one statement. */
export class JobStore<Dto extends { id: string; createdAt: string }, Row extends JobRow<string>> {
  private readonly logger = new Logger('Jobs');

  constructor(
    private readonly variant: Variant<Dto, Row>,
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /** Stored results of an organization beyond which it cannot have another unfinished job. */
  get resultsBytesMax(): number {
    return this.environment.JOB_RESULTS_MAX_MEGABYTES * BYTES_PER_MEGABYTE;
  }

  /**
   * Creates one with a new ID, or finds the one that was created with the same idempotency key.
   *
   * @param facts what the line of the log has in addition
   * @throws TooManyJobsError | TooManySubscriptionsError | StoredResultsLimitError | IdempotencyConflictError |
   * InvalidApiKeyError when the organization was deleted
   */
  async create(columns: NewRow, payer: Payer, actor?: Actor, facts?: object): Promise<Dto> {
    const { prefix, name, unfinishedMax, storedMax, toDto } = this.variant;
    const id = `${prefix}_${bytesToBase62(randomBytes(16))}`;
    const job = { ...columns, id, organization_id: payer.organizationId, key_id: payer.keyId };
    const { JOB_VIDEOS_PER_ORGANIZATION: videosMax } = this.environment;
    const limits = [this.environment[unfinishedMax], storedMax, this.resultsBytesMax, videosMax];
    const values = [JSON.stringify(job), ...limits, actor ?? null, `${name}.created`];
    const [row] = await queryWithDeadline<CreatedRow<Row>[]>(this.database, CREATE, values, payer.organizationId);
    if (!row) throw new InvalidApiKeyError('revoked');
    const { outcome } = row;
    if (outcome !== 'created' && outcome !== 'known') throw this.refused(outcome);
    if (outcome === 'created') this.logger.log({ event: `${name}_created`, [`${name}Id`]: id, ...payer, ...facts });
    return toDto(row);
  }

  /** The error when there can be no other one. */
  refused(refusal: Refusal): Error {
    const { TooMany, unfinishedMax } = this.variant;
    if (refusal === 'conflict') return new IdempotencyConflictError();
    if (refusal === 'too_many') return new TooMany(this.environment[unfinishedMax]);
    const { JOB_RESULTS_MAX_MEGABYTES: megabytes, JOB_VIDEOS_PER_ORGANIZATION: videos } = this.environment;
    if (refusal === 'too_many_videos') return new StoredResultsLimitError({ videos });
    return new StoredResultsLimitError(refusal === 'too_many_stored' ? { jobs: STORED_JOBS_MAX } : { megabytes });
  }

  /** @throws JobNotFoundError | SubscriptionNotFoundError */
  async get(organizationId: string, id: string): Promise<Dto> {
    const [row] = await this.rowsOf<Row>(GET, [organizationId, id]);
    return this.variant.toDto(row);
  }

  /** A page of the list, newest first. @throws UnknownCursorError */
  async list(organizationId: string, { limit, after }: PageRequest): Promise<Page<Dto>> {
    const { name, idForm, toDto } = this.variant;
    const place = after == null ? undefined : parseCursor(after, idForm);
    const values = [organizationId, name === 'subscription', place?.createdAt ?? null, place?.id ?? null, limit + 1];
    const rows = await queryWithDeadline<Row[]>(this.database, LIST, values);
    return toPage(rows.map(toDto), limit, toCursor);
  }

  /** Deletes one with its results. An unfinished one ends without an event. @throws JobNotFoundError | SubscriptionNotFoundError */
  async delete(organizationId: string, id: string, actor?: Actor): Promise<void> {
    const { name } = this.variant;
    await this.change(DELETE, [organizationId, id, actor ?? null, `${name}.deleted`]);
    this.logger.log({ event: `${name}_deleted`, [`${name}Id`]: id, organizationId });
  }

  /** @throws JobNotFoundError | SubscriptionNotFoundError | ResultsExpiredError | CursorExpiredError */
  async results(organizationId: string, id: string, { limit, after }: ResultsRequest): Promise<ResultsPart<Dto>> {
    const values = [after ?? 0, limit, READ_BYTES_MAX];
    const rows = await this.rowsOf<ResultRow<Row>>(RESULTS, [organizationId, id, ...values]);
    const [first] = rows;
    const { expired_at, expired_sequence: expiredSequence, is_final, succeeded, failed } = first;
    if (expired_at) throw new ResultsExpiredError(expired_at.toISOString());
    if (after !== undefined && after < expiredSequence) throw new CursorExpiredError(expiredSequence);
    const entries = rows.flatMap((row) => {
      if (row.sequence === null) return [];
      const { sequence, position, entry: deflated, entry_bytes: jsonBytes, entry_crc } = row;
      return [{ sequence, position, text: { deflated, jsonBytes, crc32: Number(entry_crc) } }];
    });
    const last = succeeded + failed;
    // An `after` beyond the last entry, e.g. from before a restore of the database, would pass later ones.
    const next = entries.at(-1)?.sequence ?? Math.min(after ?? expiredSequence, last);
    return { owner: this.variant.toDto(first), entries, next, isEnd: is_final && next >= last };
  }

  /**
   * Runs a statement that changes one, with the organization, null for an operator, as $1 and the ID as $2.
   *
   * @returns its row
   * @throws JobNotFoundError | SubscriptionNotFoundError when it has none
   */
  async change<Result>(statement: string, values: [string | null, string, ...unknown[]]): Promise<Result> {
    const [organizationId] = values;
    const [row] = await this.rowsOf<Result>(statement, values, organizationId ?? undefined);
    return row;
  }

  /** Only what has the form of an ID is looked up. */
  private async rowsOf<Result>(
    statement: string,
    values: [organizationId: string | null, id: string, ...others: unknown[]],
    lockedOrganization?: string,
  ): Promise<[Result, ...Result[]]> {
    const { idForm, NotFound } = this.variant;
    if (!idForm.test(values[1])) throw new NotFound();
    const [first, ...others] = await queryWithDeadline<Result[]>(this.database, statement, values, lockedOrganization);
    if (first === undefined) throw new NotFound();
    return [first, ...others];
  }
}

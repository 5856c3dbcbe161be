import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { Environment } from '../config/environment.js';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { bytesToBase62 } from '../domain/api-key-text.js';
import type { Actor } from '../domain/caller.js';
import { InvalidApiKeyError } from '../domain/errors.js';
import { IdempotencyConflictError } from '../http/routes/idempotency-key.js';
import { toPage, type Page, type PageRequest } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import type { Labels } from './dto/labels.js';
import { columnsOf, type JobRow } from './job-row.js';
import { isWanted, wantedValues, type ListFilter } from './list-filter.js';
import type { JobVariant, Variant } from './job-variants.js';
import { parseCursor, ResultsExpiredError, STORED_JOBS_MAX, StoredResultsLimitError, toCursor } from './job.js';
import { lostAfter, placeOf, readResultCursor, writeResultCursor } from './results/cursor.js';
import {
  READ_BYTES_MAX,
  storedEntry,
  type EntryRow,
  type ResultsPart,
  type ResultsRequest,
} from './results/results-part.js';

/** A part of the results of a job or a subscription. */
export interface OwnedResults<Owner> extends ResultsPart {
  /** The job or the subscription at the time of the last entry. */
  owner: Owner;
  /** Whether no entry can follow, unless the job is resumed. The running slice of a canceled job can still add some. */
  isEnd: boolean;
}

type ResultRow<Row> = Row & { expired_at: Date | null; is_final: boolean; lost: number } & {
  stored_sequence: number | null;
  stored_mark: string | null;
} & ((EntryRow & { position: number }) | { [Name in keyof EntryRow | 'position']: null });

/** Why another job or subscription is refused. */
export type Refusal = 'conflict' | 'too_many' | 'too_many_stored' | 'too_many_videos' | 'too_much_stored';

type CreatedRow<Row> = Row & { outcome: 'created' | 'known' | Exclude<Refusal, 'conflict'> };

/** What makes a request repeatable. */
export interface Idempotency {
  key: string;
  /** Whether the key is that of one request only, so that none with it is another one. */
  identifiesRequest?: boolean;
}

interface NewRow {
  /** JSON. */
  request: string;
  labels: Labels;
  results_seconds: number;
  /** Of a job. */
  videos?: readonly string[] | undefined;
  /** Of a job. */
  video_limit?: number | null;
  /** Of a subscription. */
  check_seconds?: number;
  /** Of a subscription: the ID of what it follows, or the channel as it was named. */
  source_id?: string;
  /** Of a subscription whose channel is known. */
  channel_id?: string | undefined;
  /** JSON. */
  channel?: string | undefined;
}

const BYTES_PER_MEGABYTE = 1024 * 1024;

const GET = `SELECT ${columnsOf('job')} FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`;

/** $2 and $3 the last one of the former page, $4 count, $5 and $6 as `isWanted` has them. */
const listOf = (name: JobVariant) => `
  SELECT ${columnsOf('job')} FROM jobs job
    WHERE organization_id = $1 AND deleted_at IS NULL AND check_seconds IS ${name === 'job' ? 'NULL' : 'NOT NULL'}
      AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3::text)) AND ${isWanted('$5', '$6')}
    ORDER BY created_at DESC, id DESC LIMIT $4`;

/** $3 and $4 who deletes it, and the name of that in the audit trail. */
const DELETE = `
  SELECT id, audit_record($3, $4, organization_id, id, request::jsonb - 'videosHash', NULL) FROM job_delete($1, $2)`;

/**
 * $3 sequence before the first entry, $4 up to which the reader knows what has expired, $5 count, $6 bytes: the lengths of the entries are
 * known without reading them.
 */
const RESULTS = `
  WITH found AS MATERIALIZED (
    SELECT ${columnsOf('job')}, CASE WHEN expires_at <= clock_now() THEN expires_at END AS expired_at,
           finished_at IS NOT NULL AND coalesce(is_due(claimed_until, interval '2 hours'), true) AS is_final,
           ${lostAfter('$4', 'expired_sequence', 'FROM job_videos WHERE job_id = $2')} AS lost
      FROM jobs job WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
  ), decided AS (
    SELECT position, sum(octet_length(entry)) OVER (ORDER BY sequence) - octet_length(entry) AS bytes_before
      FROM (SELECT sequence, position, entry FROM job_videos WHERE job_id = $2
              AND sequence > $3::bigint ORDER BY sequence LIMIT $5) page
  )
  SELECT found.*, stored.sequence AS stored_sequence, stored.mark AS stored_mark, video.sequence, video.mark, video.position,
         video.entry, video.entry_bytes, video.entry_crc
    FROM found LEFT JOIN (SELECT sequence, mark FROM job_videos WHERE job_id = $2 AND sequence <= $3::bigint
                            ORDER BY sequence DESC LIMIT 1) stored ON true
      LEFT JOIN (decided JOIN job_videos video ON video.job_id = $2 AND video.position = decided.position)
        ON decided.bytes_before < $6
    ORDER BY video.sequence`;

const KNOWS = 'SELECT id FROM jobs WHERE organization_id = $1 AND idempotency_key = $2';

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
  async create(columns: NewRow, payer: Payer, idempotency?: Idempotency, actor?: Actor, facts?: object): Promise<Dto> {
    const { prefix, name, unfinishedMax, storedMax, toDto, readRequest } = this.variant;
    const id = `${prefix}_${bytesToBase62(randomBytes(16))}`;
    const job = {
      ...columns,
      idempotency_key: idempotency?.key,
      id,
      organization_id: payer.organizationId,
      key_id: payer.keyId,
    };
    const { JOB_VIDEOS_PER_ORGANIZATION: videosMax } = this.environment;
    const limits = [this.environment[unfinishedMax], storedMax, this.resultsBytesMax, videosMax];
    const values = [JSON.stringify(job), ...limits, actor ?? null, `${name}.created`];
    const [row] = await queryWithDeadline<CreatedRow<Row>[]>(this.database, CREATE, values, payer.organizationId);
    if (!row) throw new InvalidApiKeyError('revoked');
    const { outcome } = row;
    if (outcome !== 'created' && outcome !== 'known') throw this.refused(outcome);
    // The key can be that of a request of the other kind. Both have the defaults of this version.
    const isSame = (): boolean =>
      (row.check_seconds === null) === (name === 'job') &&
      isDeepStrictEqual(readRequest(row.created_request ?? row.request), readRequest(columns.request));
    if (outcome === 'known' && !idempotency?.identifiesRequest && !isSame()) throw this.refused('conflict');
    if (outcome === 'created') this.logger.log({ event: `${name}_created`, [`${name}Id`]: id, ...payer, ...facts });
    return toDto(row);
  }

  /** Whether a request with the idempotency key has created one that is not deleted. */
  async knows(organizationId: string, { key }: Idempotency): Promise<boolean> {
    return (await queryWithDeadline<object[]>(this.database, KNOWS, [organizationId, key])).length > 0;
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
  async list(organizationId: string, { limit, after, ...filter }: PageRequest & ListFilter): Promise<Page<Dto>> {
    const { name, idForm, toDto } = this.variant;
    const place = after == null ? undefined : parseCursor(after, idForm);
    const values = [organizationId, place?.createdAt ?? null, place?.id ?? null, limit + 1];
    const rows = await queryWithDeadline<Row[]>(this.database, listOf(name), [...values, ...wantedValues(filter)]);
    return toPage(rows.map(toDto), limit, toCursor);
  }

  /** Deletes one with its results. An unfinished one ends without an event. @throws JobNotFoundError | SubscriptionNotFoundError */
  async delete(organizationId: string, id: string, actor?: Actor): Promise<void> {
    const { name } = this.variant;
    await this.change(DELETE, [organizationId, id, actor ?? null, `${name}.deleted`]);
    this.logger.log({ event: `${name}_deleted`, [`${name}Id`]: id, organizationId });
  }

  /** @throws JobNotFoundError | SubscriptionNotFoundError | ResultsExpiredError | CursorExpiredError | CursorUnknownError */
  async results(organizationId: string, id: string, { limit, after }: ResultsRequest): Promise<OwnedResults<Dto>> {
    const cursor = after === undefined ? undefined : readResultCursor(after);
    const values = [cursor?.sequence ?? 0, cursor?.expired ?? null, limit, READ_BYTES_MAX];
    const rows = await this.rowsOf<ResultRow<Row>>(RESULTS, [organizationId, id, ...values]);
    const [first] = rows;
    if (first.expired_at) throw new ResultsExpiredError(first.expired_at.toISOString());
    const last = first.succeeded + first.failed;
    const expired = { sequence: first.expired_sequence, mark: first.expired_mark };
    const { stored_sequence: sequence, stored_mark: mark, lost } = first;
    const place = placeOf(cursor, { last, expired, stored: sequence === null ? null : { sequence, mark }, lost });
    // The place in the list is that of a job.
    const isJob = this.variant.name === 'job';
    const entries = rows.flatMap((row) =>
      storedEntry(row, place.expired, isJob && row.position !== null ? { position: row.position } : {}),
    );
    // What follows the last one that is stored has expired.
    const hasMore = entries.length > 0 && (rows.at(-1)?.sequence ?? last) < last;
    const begin = writeResultCursor(place);
    return {
      ...{ owner: this.variant.toDto(first), entries, after: begin, next: entries.at(-1)?.cursor ?? begin },
      ...{ hasMore, endsPage: false },
      isEnd: first.is_final && !hasMore,
    };
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

import type { Database } from '../../harness/database.js';

/** Subscriptions and jobs that were charged anything but what they have fetched, and whose counts differ from their videos. */
const JOBS = `
  SELECT job.id, job.total, job.succeeded, job.failed, job.cached, job.fetched, videos.*, charges.charged
  FROM jobs AS job
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state NOT IN ('seen', 'undecided'))::integer AS rows,
      count(*) FILTER (WHERE state = 'succeeded')::integer AS rows_succeeded,
      count(*) FILTER (WHERE state = 'failed')::integer AS rows_failed,
      count(*) FILTER (WHERE state = 'succeeded' AND cached)::integer AS rows_cached,
      coalesce(max(sequence), 0)::integer AS sequences
    FROM job_videos WHERE job_id = job.id
  ) AS videos
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(charged), 0)::integer AS charged FROM quota_reservations WHERE request_id = job.id
  ) AS charges
  WHERE (job.total, job.succeeded, job.failed, job.cached, job.fetched, job.fetched)
    IS DISTINCT FROM (rows, rows_succeeded, rows_failed, rows_cached, rows_succeeded - rows_cached, charged)
    OR sequences <> rows_succeeded + rows_failed`;

/** Organizations whose usage is not what their jobs and subscriptions have fetched, with what was charged for calls. */
const ORGANIZATIONS = `
  SELECT id, used, fetched, calls FROM organizations
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(used), 0)::integer AS used FROM quota_periods WHERE organization_id = organizations.id
  ) AS periods
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(jobs.fetched), 0)::integer AS fetched FROM jobs WHERE organization_id = organizations.id
  ) AS own
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(charged), 0)::integer AS calls FROM quota_reservations AS reservation
    WHERE organization_id = organizations.id AND NOT EXISTS (SELECT FROM jobs WHERE jobs.id = reservation.request_id)
  ) AS others
  WHERE used <> fetched + calls`;

const OPEN = `
  SELECT (SELECT count(*) FROM jobs WHERE state NOT IN ('running', 'completed') OR check_seconds IS NULL AND state = 'running'
      OR total > succeeded + failed)::integer AS jobs,
    ((SELECT count(*) FROM jobs WHERE claim IS NOT NULL)
      + (SELECT count(*) FROM sources WHERE claim IS NOT NULL))::integer AS claims,
    ((SELECT count(*) FROM jobs WHERE next_run_at <= clock_now())
      + (SELECT count(*) FROM sources WHERE next_check_at <= clock_now() OR spread_at IS NOT NULL)
      + (SELECT count(*) FROM webhook_deliveries WHERE next_attempt_at <= clock_now()))::integer AS due,
    (SELECT count(*) FROM jobs WHERE check_seconds IS NOT NULL AND place < 0)::integer AS unchecked,
    (SELECT count(*) FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL)::integer AS deliveries,
    (SELECT count(*) FROM quota_open_reservations WHERE leased_until > clock_now())::integer AS reservations`;

/** What is not done yet. */
export interface OpenWork {
  jobs: number;
  claims: number;
  /** Slices, checks and deliveries. */
  due: number;
  /** Subscriptions whose first check has not ended. */
  unchecked: number;
  deliveries: number;
  reservations: number;
}

/** The charges and counts in the database, which agree in every snapshot. */
export class Books {
  constructor(
    private readonly database: Database,
    private readonly url: string,
  ) {}

  async violations(): Promise<string[]> {
    const rows = [await this.database.query(this.url, JOBS), await this.database.query(this.url, ORGANIZATIONS)].flat();
    return rows.map((row) => JSON.stringify(row));
  }

  async open(): Promise<OpenWork> {
    const [row] = await this.database.query(this.url, OPEN);
    const count = (name: keyof OpenWork): number => Number(row?.[name]);
    return {
      jobs: count('jobs'),
      claims: count('claims'),
      due: count('due'),
      unchecked: count('unchecked'),
      deliveries: count('deliveries'),
      reservations: count('reservations'),
    };
  }

  /** What a call was charged; undefined when it has no reservation. */
  async chargeOf(requestId: string): Promise<number | undefined> {
    const [row] = await this.database.query(this.url, 'SELECT charged FROM quota_reservations WHERE request_id = $1', [
      requestId,
    ]);
    return row && Number(row['charged']);
  }
}

import type { Database } from '../../harness/database.js';

/** Jobs whose counts differ from their videos, in one snapshot of the database. */
const COUNTS = `
  SELECT job.id, job.total, job.succeeded, job.failed, job.cached, job.fetched, videos.*
  FROM jobs AS job
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS rows,
      count(*) FILTER (WHERE state = 'succeeded')::integer AS rows_succeeded,
      count(*) FILTER (WHERE state = 'failed')::integer AS rows_failed,
      count(*) FILTER (WHERE state = 'succeeded' AND cached)::integer AS rows_cached
    FROM job_videos WHERE job_id = job.id
  ) AS videos
  WHERE (job.total, job.succeeded, job.failed, job.cached, job.fetched)
    IS DISTINCT FROM (rows, rows_succeeded, rows_failed, rows_cached, rows_succeeded - rows_cached)`;

/** Organizations that were charged anything but what their jobs fetched, in the same snapshot as those counts. */
const CHARGES = `
  SELECT id, charged, fetched FROM organizations
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(used), 0)::integer AS charged FROM quota_periods WHERE organization_id = organizations.id
  ) AS periods
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(jobs.fetched), 0)::integer AS fetched FROM jobs WHERE organization_id = organizations.id
  ) AS own
  WHERE charged <> fetched`;

/** Results of jobs that keep them, of which the library has no passage. */
const UNKEPT = `
  SELECT job.id, video.video_id FROM jobs AS job JOIN job_videos AS video ON video.job_id = job.id
  WHERE job.request::jsonb -> 'keep' = 'true' AND video.state = 'succeeded' AND NOT EXISTS (
    SELECT FROM library_texts AS text JOIN library_passages AS passage ON passage.text_id = text.id
    WHERE text.organization_id = job.organization_id AND text.video_id = video.video_id)`;

/** Work that is due or running, and the seconds until the next that will be due. */
const OUTLOOK = `
  SELECT count(*) FILTER (WHERE claimed_until > clock_now())::integer AS claimed,
    count(*) FILTER (WHERE next_run_at <= clock_now())::integer AS due,
    extract(epoch FROM min(next_run_at) - clock_now())::float8 AS seconds
  FROM jobs`;

/** What does not hold in the database at this moment; each statement sees one snapshot. */
export async function violationsIn(database: Database, url: string): Promise<string[]> {
  const [counts, charges] = [await database.query(url, COUNTS), await database.query(url, CHARGES)];
  const unkept = await database.query(url, UNKEPT);
  return [
    ...counts.map((row) => `the counts of a job differ from its videos: ${JSON.stringify(row)}`),
    ...charges.map((row) => `charged and fetched differ: ${JSON.stringify(row)}`),
    ...unkept.map((row) => `a result is final and not in the library: ${JSON.stringify(row)}`),
  ];
}

export async function outlookIn(
  database: Database,
  url: string,
): Promise<{ claimed: number; due: number; seconds: number | undefined }> {
  const [row] = await database.query(url, OUTLOOK);
  const seconds = row?.['seconds'];
  return {
    claimed: Number(row?.['claimed']),
    due: Number(row?.['due']),
    seconds: typeof seconds === 'number' ? seconds : undefined,
  };
}

-- Entries of the feed that the library keeps stay in it. A result of a subscription is removed with its entry, no longer by itself.
-- Every process of the service must be stopped for this migration.

ALTER TABLE log_entries
  -- Whether it stays although it has expired, until its text is deleted from the library.
  ADD COLUMN is_kept boolean NOT NULL DEFAULT false;
UPDATE log_entries log SET is_kept = true FROM jobs job, job_videos video
  WHERE job.id = log.job_id AND job.request::jsonb -> 'keep' = 'true' AND video.job_id = log.job_id AND video.position = log.position
    AND video.state = 'succeeded' AND EXISTS (
      SELECT FROM library_texts WHERE organization_id = log.organization_id AND video_id = video.video_id AND deleted_at IS NULL);
CREATE INDEX log_entries_expiring ON log_entries (organization_id, expires_at, sequence) WHERE NOT is_kept;
CREATE INDEX log_entries_video ON log_entries (organization_id, (event ->> 'videoId'));

DROP FUNCTION IF EXISTS subscription_remove_batch(jobs, integer);
DROP FUNCTION IF EXISTS log_bounds(text);
ALTER TABLE jobs DISABLE TRIGGER USER;
UPDATE jobs SET remove_at = NULL WHERE check_seconds IS NOT NULL AND finished_at IS NULL AND deleted_at IS NULL;
-- Those whose entry was removed before them.
WITH removed AS (
  DELETE FROM job_videos video USING jobs job
    WHERE job.id = video.job_id AND job.check_seconds IS NOT NULL AND job.deleted_at IS NULL AND video.sequence IS NOT NULL AND NOT EXISTS (
      SELECT FROM log_entries log
        WHERE log.organization_id = job.organization_id AND log.job_id = video.job_id AND log.position = video.position)
    RETURNING video.job_id, video.sequence, video.mark, octet_length(video.entry) AS bytes
)
UPDATE jobs SET stored_bytes = stored_bytes - of_job.bytes, expired_sequence = of_job.sequence, expired_mark = of_job.mark
  FROM (SELECT job_id, sum(bytes) AS bytes, max(sequence) AS sequence, (array_agg(mark ORDER BY sequence DESC))[1] AS mark
          FROM removed GROUP BY job_id) of_job
  WHERE jobs.id = of_job.job_id;
ALTER TABLE jobs ENABLE TRIGGER USER;

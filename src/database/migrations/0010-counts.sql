-- Jobs are counted where the metrics are read, instead of with every slice.

DROP TRIGGER IF EXISTS job_counted ON jobs;
DROP FUNCTION IF EXISTS job_counted();
DROP TABLE job_counts;
-- As processes of version 1.0 read the counts.
CREATE VIEW job_counts AS
  SELECT state, reason, count(*) AS jobs, sum(stored_bytes) AS stored_bytes, check_seconds IS NOT NULL AS is_subscription
    FROM jobs WHERE deleted_at IS NULL GROUP BY state, reason, check_seconds IS NOT NULL;

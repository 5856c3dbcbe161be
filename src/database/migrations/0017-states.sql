-- Removal takes turns between organizations, and what waits for it is counted. Every process of the service must be stopped for this
-- migration.

ALTER TABLE jobs
  -- The rows of job_videos that were removed.
  ADD COLUMN removed integer NOT NULL DEFAULT 0;
ALTER TABLE job_queues
  -- As turn_at, of the removal of results.
  ADD COLUMN remove_turn_at timestamptz;
INSERT INTO job_queues AS queue (organization_id, remove_turn_at)
  SELECT organization_id, min(remove_at) FROM jobs WHERE remove_at IS NOT NULL GROUP BY organization_id
  ON CONFLICT (organization_id) DO UPDATE SET remove_turn_at = excluded.remove_turn_at;
ALTER TABLE jobs DISABLE TRIGGER USER;
-- Those of which all rows were removed wait for their own end.
UPDATE jobs SET removed = last_position WHERE remove_at > expires_at AND deleted_at IS NULL AND check_seconds IS NULL;
UPDATE jobs SET remove_at = 'epoch' WHERE deleted_at IS NOT NULL;
ALTER TABLE jobs ENABLE TRIGGER USER;
CREATE INDEX job_queues_remove_turn ON job_queues (remove_turn_at) WHERE remove_turn_at IS NOT NULL;
DROP INDEX jobs_removable;
CREATE INDEX jobs_removable ON jobs (organization_id, remove_at) WHERE remove_at IS NOT NULL;
-- A claim changes no column with an index, so it needs room beside the row only.
ALTER TABLE jobs SET (fillfactor = 70);
-- The list of subscriptions, of which an organization has few beside its jobs.
CREATE INDEX jobs_followed ON jobs (organization_id, created_at, id) WHERE check_seconds IS NOT NULL AND deleted_at IS NULL;

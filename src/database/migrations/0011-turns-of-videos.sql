-- When videos are due is stored apart from when anything is, so that a claim that may read no list looks at nothing else.

ALTER TABLE jobs
  -- When the next slice of videos is due; null while none is, or while a check comes first.
  ADD COLUMN videos_at timestamptz;
ALTER TABLE job_queues
  -- As turn_at, of the slices of videos.
  ADD COLUMN videos_turn_at timestamptz;
ALTER TABLE jobs DISABLE TRIGGER USER;
UPDATE jobs SET videos_at = next_run_at
  WHERE next_run_at IS NOT NULL AND succeeded + failed < total AND coalesce(next_check_at > next_run_at, true);
ALTER TABLE jobs ENABLE TRIGGER USER;
UPDATE job_queues SET videos_turn_at = turn_at WHERE turn_at IS NOT NULL;
CREATE INDEX jobs_videos ON jobs (organization_id, videos_at) WHERE videos_at IS NOT NULL;
CREATE INDEX job_queues_videos_turn ON job_queues (videos_turn_at) WHERE videos_turn_at IS NOT NULL;

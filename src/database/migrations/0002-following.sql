-- Jobs that do not end: subscriptions follow a channel. The results of all jobs are read in the order in which they became
-- final.

ALTER TABLE jobs
  -- The rows of job_videos so far.
  ADD COLUMN last_position integer NOT NULL DEFAULT 0,
  -- The results up to here were removed.
  ADD COLUMN expired_sequence integer NOT NULL DEFAULT 0,
  -- Of a subscription: the time between two checks. Null for an archive job.
  ADD COLUMN check_seconds integer CHECK (check_seconds > 0),
  ADD COLUMN next_check_at timestamptz,
  -- When the list was last read up to an upload that was seen.
  ADD COLUMN checked_at timestamptz,
  -- When the first of the checks failed that have failed since the last one that read its page.
  ADD COLUMN unread_since timestamptz,
  -- When the caller last asked for a check.
  ADD COLUMN check_requested_at timestamptz,
  -- The rows up to here were seen by earlier checks: a check reads the list until it meets one of them. Null before the first
  -- check has ended.
  ADD COLUMN seen_position integer,
  -- When that check has ended.
  ADD COLUMN seen_at timestamptz,
  -- The last position when a check last read the first page of the list.
  ADD COLUMN read_position integer,
  -- Whether every upload of the channel was seen, so that any other one is new wherever the list has it.
  ADD COLUMN sees_all boolean NOT NULL DEFAULT false;

ALTER TABLE job_videos
  -- Counts the results of a job in the order in which they became final.
  ADD COLUMN sequence integer,
  ADD COLUMN decided_at timestamptz,
  DROP CONSTRAINT job_videos_state_check,
  -- 'seen': an upload that is not to be delivered, or whose result was removed. 'undecided': one of which the rest of a check
  -- decides whether it is to be delivered.
  ADD CONSTRAINT job_videos_state_check CHECK (state IN ('pending', 'succeeded', 'failed', 'seen', 'undecided')),
  DROP CONSTRAINT job_videos_check,
  ADD CONSTRAINT job_videos_check CHECK ((state IN ('pending', 'seen', 'undecided')) = (entry IS NULL));
CREATE UNIQUE INDEX job_videos_sequence ON job_videos (job_id, sequence) WHERE sequence IS NOT NULL;

-- The request of a job as its caller reads it, and its playlist beside its channel, as JSON. The columns that the request
-- replaces are dropped at once: every process of the service must be stopped for this migration.
ALTER TABLE jobs ADD COLUMN request text, ADD COLUMN playlist text;
ALTER TABLE jobs DISABLE TRIGGER USER;
UPDATE jobs SET last_position = total, request = json_build_object(
  'channel', reference, 'playlist', NULL, 'videos', NULL, 'languages', languages, 'match', 'all', 'kinds', '[]'::json,
  'include', '[]'::json, 'chunkSeconds', NULL, 'limit', video_limit, 'since', since, 'onQuota', on_quota);
ALTER TABLE jobs ENABLE TRIGGER USER;
ALTER TABLE jobs ALTER COLUMN request SET NOT NULL,
  DROP COLUMN reference, DROP COLUMN languages, DROP COLUMN since, DROP COLUMN on_quota;

UPDATE job_videos video SET sequence = decided.sequence, decided_at = coalesce(job.finished_at, now())
  FROM jobs job, (SELECT job_id, position, row_number() OVER (PARTITION BY job_id ORDER BY position) AS sequence
                    FROM job_videos WHERE state <> 'pending') decided
  WHERE job.id = video.job_id AND decided.job_id = video.job_id AND decided.position = video.position;
ALTER TABLE job_videos ADD CHECK (sequence IS NOT NULL OR state IN ('pending', 'seen', 'undecided'));

-- Of archive jobs and of subscriptions apart.
ALTER TABLE job_counts ADD COLUMN is_subscription boolean NOT NULL DEFAULT false;
-- A subscription that has no quota waits too, and has checks meanwhile.
DROP INDEX jobs_waiting;
CREATE INDEX jobs_waiting ON jobs (organization_id, reason)
  WHERE state = 'paused' AND (next_run_at IS NULL OR reason = 'plan_limit_exceeded');
DROP INDEX jobs_setbacks;
CREATE INDEX jobs_setbacks ON jobs (setbacks)
  WHERE finished_at IS NULL AND state <> 'paused' AND setbacks > 0 AND check_seconds IS NULL;

-- The log of each organization, cursors with a proof, and labels. Every process of the service must be stopped for this migration.

ALTER TABLE jobs
  ADD COLUMN labels jsonb NOT NULL DEFAULT '{}',
  -- The request that created a subscription which was changed since then; null while it has not.
  ADD COLUMN created_request text,
  -- Whether the video was listed with which a subscription starts; null until that is known, and for another start.
  ADD COLUMN start_found boolean,
  -- Of the result with expired_sequence.
  ADD COLUMN expired_mark text;

-- Random, and given with the sequence: a database that was restored counts the same numbers again, with other marks.
ALTER TABLE job_videos ADD COLUMN mark text;
UPDATE job_videos SET mark = translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 8), '+/', '-_')
  WHERE sequence IS NOT NULL;

-- The results of all subscriptions of an organization, in the order in which they became final. A row stays until the result has
-- expired, also when its subscription was deleted, so that cursors stay known.
CREATE TABLE log_entries (
  organization_id text NOT NULL REFERENCES organizations (id),
  sequence bigint NOT NULL,
  mark text NOT NULL,
  job_id text NOT NULL,
  position integer NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, sequence)
);
CREATE TABLE organization_logs (
  organization_id text PRIMARY KEY REFERENCES organizations (id),
  last_sequence bigint NOT NULL DEFAULT 0,
  -- The rows of log_entries up to here have expired and were removed; the mark of the last one.
  expired_sequence bigint NOT NULL DEFAULT 0,
  expired_mark text,
  -- When the oldest row expires; null without rows.
  remove_at timestamptz
);
CREATE INDEX organization_logs_removable ON organization_logs (remove_at) WHERE remove_at IS NOT NULL;

INSERT INTO log_entries (organization_id, sequence, mark, job_id, position, expires_at)
  SELECT job.organization_id,
         row_number() OVER (PARTITION BY job.organization_id ORDER BY video.decided_at, video.job_id, video.sequence),
         video.mark, video.job_id, video.position, video.decided_at + make_interval(secs => job.results_seconds)
    FROM job_videos video JOIN jobs job ON job.id = video.job_id
    WHERE video.sequence IS NOT NULL AND job.check_seconds IS NOT NULL AND job.deleted_at IS NULL;
INSERT INTO organization_logs (organization_id, last_sequence, remove_at)
  SELECT organization_id, max(sequence), min(expires_at) FROM log_entries GROUP BY organization_id;

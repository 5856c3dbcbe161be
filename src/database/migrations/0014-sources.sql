-- A followed channel or playlist is a source, which is read once for all its subscriptions. Every process of the service must be
-- stopped for this migration.

CREATE TABLE sources (
  -- The ID of the channel or the playlist. Of a channel that was not found yet: as a subscription named it.
  id text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('channel', 'playlist')),
  -- JSON of the channel or the playlist, as text: jsonb refuses characters that JSON can escape.
  header text,
  created_at timestamptz NOT NULL,
  -- Null while no subscription wants checks. A time that was set later than now, by a wrong clock, is not believed.
  next_check_at timestamptz,
  scheduled_at timestamptz NOT NULL,
  check_requested_at timestamptz,
  -- When the list was last read to where its news end.
  checked_at timestamptz,
  -- When subscriptions take the next turn at what was found, or at a pause; null when none has to.
  spread_at timestamptz,
  claim uuid,
  claimed_until timestamptz,
  -- When the first page was read of the walk along the list that runs or was the last, and where it goes on.
  began_at timestamptz,
  continuation text,
  -- How many uploads it has found by now, and whether what follows is only read for the start of subscriptions.
  found integer NOT NULL DEFAULT 0,
  for_starts boolean NOT NULL DEFAULT false,
  last_position integer NOT NULL DEFAULT 0,
  -- Up to here subscriptions take uploads. Null before the first walk has ended.
  seen_position integer,
  -- When the last walk has ended, and when it began.
  seen_at timestamptz,
  read_at timestamptz,
  -- Whether every upload of the channel was seen, so that any other one is new wherever the list has it.
  sees_all boolean NOT NULL DEFAULT false,
  -- What the first page was when the list was last read: another read of the same page finds nothing.
  fingerprint text,
  -- The old uploads of a list that was odd, which the next read has to have too.
  odd text,
  -- How many videos the list states beyond those that it has, how often in succession it did, and since when.
  hidden integer,
  hidden_reads integer NOT NULL DEFAULT 0,
  hidden_since timestamptz,
  -- Consecutive checks that failed, since when, and why the list cannot be read.
  setbacks integer NOT NULL DEFAULT 0,
  unread_since timestamptz,
  reason text,
  -- Whether its subscriptions are paused for that reason.
  is_unread boolean NOT NULL DEFAULT false
);
CREATE INDEX sources_due ON sources (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX sources_scheduled ON sources (scheduled_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX sources_spread ON sources (spread_at) WHERE spread_at IS NOT NULL;

CREATE TABLE source_uploads (
  source_id text NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
  video_id text NOT NULL,
  -- The place in the order in which uploads were found. One about which the list states something else moves to the end.
  position integer NOT NULL,
  first_position integer NOT NULL,
  -- 'new': for every subscription that has not come that far. 'undecided': the rest of the walk decides that.
  state text NOT NULL CHECK (state IN ('new', 'seen', 'undecided')),
  -- Whether a new one was published before the last walk.
  is_old boolean NOT NULL DEFAULT false,
  found_at timestamptz NOT NULL,
  -- JSON of the listed upload, while something can become of it.
  upload text,
  kind text,
  published_at timestamptz,
  -- The place in the list when it was last read for the start of a subscription.
  rank integer,
  PRIMARY KEY (source_id, video_id)
);
CREATE UNIQUE INDEX source_uploads_position ON source_uploads (source_id, position);
-- Those that subscriptions take.
CREATE INDEX source_uploads_new ON source_uploads (source_id, position) WHERE state = 'new' OR first_position < position;
CREATE INDEX source_uploads_rank ON source_uploads (source_id, rank) WHERE rank IS NOT NULL;
CREATE INDEX source_uploads_listed ON source_uploads (source_id, found_at) WHERE upload IS NOT NULL;

ALTER TABLE jobs
  -- Of a subscription: what it follows, and up to which position it has taken uploads, -1 before its start.
  ADD COLUMN source_id text,
  ADD COLUMN place integer;
ALTER TABLE jobs DISABLE TRIGGER USER;
UPDATE jobs SET source_id = coalesce(channel_id, request::json ->> 'channel'), place = -1
  WHERE check_seconds IS NOT NULL AND finished_at IS NULL AND deleted_at IS NULL;
DELETE FROM job_videos WHERE state = 'undecided';

INSERT INTO sources (id, kind, header, created_at, next_check_at, scheduled_at, checked_at, seen_at, sees_all, setbacks, unread_since,
                     reason, is_unread)
  SELECT source_id, 'channel', (array_agg(channel ORDER BY checked_at DESC NULLS LAST))[1], min(created_at), min(next_check_at),
         now(), max(checked_at), min(seen_at), bool_and(sees_all), min(setbacks), min(unread_since),
         min(reason) FILTER (WHERE reason = 'channel_not_found' OR state = 'paused' AND reason = 'upstream_blocked'),
         bool_or(state = 'paused' AND reason IN ('channel_not_found', 'upstream_blocked'))
    FROM jobs WHERE source_id IS NOT NULL GROUP BY source_id;

-- An upload counts as seen when every subscription has seen it. What one of them has not is found again, and each takes it that
-- does not have it. Subscriptions that have no upload in common go on from what the one has seen that was checked last.
INSERT INTO source_uploads (source_id, video_id, position, first_position, state, found_at, upload)
  SELECT source_id, video_id, place, place, 'seen', now(), upload FROM (
    SELECT job.source_id, video.video_id, max(video.upload) FILTER (WHERE video.state = 'pending') AS upload,
           row_number() OVER (PARTITION BY job.source_id ORDER BY max(video.position)) AS place
      FROM jobs job JOIN job_videos video ON video.job_id = job.id AND video.position <= job.seen_position
      GROUP BY job.source_id, video.video_id
      HAVING count(*) = (SELECT count(*) FROM jobs other WHERE other.source_id = job.source_id AND other.seen_position IS NOT NULL)
  ) common;
INSERT INTO source_uploads (source_id, video_id, position, first_position, state, found_at, upload)
  SELECT job.source_id, video.video_id, video.position, video.position, 'seen', now(), CASE WHEN video.state = 'pending' THEN video.upload END
    FROM (SELECT DISTINCT ON (source_id) * FROM jobs WHERE seen_position > 0 AND source_id IS NOT NULL
            ORDER BY source_id, seen_at DESC) job
      JOIN job_videos video ON video.job_id = job.id AND video.position <= job.seen_position
    WHERE NOT EXISTS (SELECT FROM source_uploads WHERE source_id = job.source_id);
UPDATE sources SET last_position = known.count, seen_position = CASE WHEN seen_at IS NOT NULL THEN known.count END
  FROM (SELECT sources.id, coalesce(max(position), 0) AS count FROM sources LEFT JOIN source_uploads ON source_id = id GROUP BY id) known
  WHERE known.id = sources.id;

UPDATE jobs SET place = CASE WHEN jobs.seen_position IS NULL THEN -1 ELSE sources.seen_position END, setbacks = 0, continuation = NULL,
    claim = NULL, claimed_until = NULL,
    reason = CASE WHEN state = 'paused' OR jobs.reason = 'upstream_blocked' THEN jobs.reason END,
    next_run_at = CASE WHEN state = 'running' OR jobs.reason = 'plan_limit_exceeded' THEN (
      SELECT coalesce(retry_at, now()) FROM job_videos WHERE job_id = jobs.id AND state = 'pending' ORDER BY 1 LIMIT 1) END
  FROM sources WHERE sources.id = jobs.source_id;
UPDATE jobs SET videos_at = next_run_at, started_at = coalesce(started_at, created_at) WHERE source_id IS NOT NULL;
ALTER TABLE jobs ENABLE TRIGGER USER;

ALTER TABLE jobs DROP COLUMN next_check_at, DROP COLUMN checked_at, DROP COLUMN unread_since, DROP COLUMN seen_position,
  DROP COLUMN seen_at, DROP COLUMN read_position, DROP COLUMN sees_all;
-- The subscriptions of a source by how far they are, and the interval of those that want checks.
CREATE INDEX jobs_place ON jobs (source_id, state, place) WHERE source_id IS NOT NULL;
CREATE INDEX jobs_unread ON jobs (source_id) WHERE source_id IS NOT NULL AND state = 'paused'
  AND reason IN ('channel_not_found', 'playlist_not_found', 'upstream_blocked');
CREATE INDEX jobs_wanting ON jobs (source_id, check_seconds) WHERE source_id IS NOT NULL AND finished_at IS NULL
  AND deleted_at IS NULL AND (state = 'running' OR reason NOT IN ('paused_by_caller', 'plan_changed'));

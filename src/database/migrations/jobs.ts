/**
 * Archive jobs, their videos and their results. The tables are the truth and the engine: workers ask them for the next
 * slice, and every change of a job is one call of a function. A slice is claimed, and its results are stored only while its
 * claim holds, in the transaction that settles its reservations. So a process can be killed at any point: what was fetched
 * is stored and charged together, or neither.
 */
export const JOBS = `
CREATE TABLE jobs (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  key_id text NOT NULL REFERENCES api_keys (id),
  idempotency_key text,
  -- Tells a repeated request from another one with the same key.
  request_hash bytea NOT NULL,
  -- The channel as it was requested.
  reference text NOT NULL,
  languages text[] NOT NULL,
  video_limit integer CHECK (video_limit > 0),
  since text,
  on_quota text NOT NULL CHECK (on_quota IN ('pause', 'fail')),
  state text NOT NULL DEFAULT 'queued'
    CHECK (state IN ('queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed')),
  reason text,
  channel_id text,
  -- JSON of the channel, as text: jsonb refuses characters that JSON can escape.
  channel text,
  -- Where the listing goes on.
  continuation text,
  -- The list is read again, and no video of the job was met yet.
  relisting boolean NOT NULL DEFAULT false,
  listed_at timestamptz,
  total integer NOT NULL DEFAULT 0,
  succeeded integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  cached integer NOT NULL DEFAULT 0,
  fetched integer NOT NULL DEFAULT 0,
  stored_bytes bigint NOT NULL DEFAULT 0,
  -- Consecutive slices that failed.
  setbacks integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  expires_at timestamptz,
  deleted_at timestamptz,
  -- Null while nothing is to be done.
  next_run_at timestamptz,
  -- The running slice, until its lease ends.
  claim uuid,
  claimed_until timestamptz,
  -- The claim of the last slice of videos that was stored.
  stored_claim uuid,
  -- Orders the slices of all jobs, by a sequence because clocks step back.
  last_turn bigint,
  UNIQUE (organization_id, idempotency_key),
  CHECK (succeeded = cached + fetched AND succeeded + failed <= total),
  CHECK ((finished_at IS NULL) = (state NOT IN ('completed', 'canceled', 'failed'))),
  CHECK (next_run_at IS NULL OR (finished_at IS NULL AND deleted_at IS NULL))
);
CREATE SEQUENCE job_turns;
CREATE INDEX jobs_due ON jobs (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX jobs_created ON jobs (organization_id, created_at, id);
CREATE INDEX jobs_all_created ON jobs (created_at, id);
CREATE INDEX jobs_turn ON jobs (organization_id, last_turn);
CREATE INDEX jobs_unfinished ON jobs (organization_id) WHERE finished_at IS NULL AND deleted_at IS NULL;
CREATE INDEX jobs_removable ON jobs (coalesce(deleted_at, expires_at)) WHERE coalesce(deleted_at, expires_at) IS NOT NULL;

CREATE TABLE job_videos (
  job_id text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  position integer NOT NULL CHECK (position > 0),
  video_id text NOT NULL,
  -- JSON of the listed upload.
  upload text NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
  retries smallint NOT NULL DEFAULT 0,
  retry_at timestamptz,
  cached boolean,
  -- The entry of the results as deflated JSON, the length of the JSON and its checksum.
  entry bytea,
  entry_bytes integer,
  entry_crc bigint,
  PRIMARY KEY (job_id, position),
  UNIQUE (job_id, video_id),
  CHECK ((state = 'pending') = (entry IS NULL)),
  CHECK ((state = 'succeeded') = (cached IS NOT NULL))
);
-- The entries are deflated, so compressing them again only costs time.
ALTER TABLE job_videos ALTER COLUMN entry SET STORAGE EXTERNAL;
CREATE INDEX job_videos_pending ON job_videos (job_id, position) WHERE state = 'pending';

-- Writes a changed job. The end of a job, its resumption and the event for its webhooks follow from the change of its state.
CREATE FUNCTION job_store(p_old jobs, p_new jobs, p_results_seconds double precision) RETURNS jobs
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_job jobs := p_new;
BEGIN
  IF v_job.state NOT IN ('completed', 'canceled', 'failed') THEN
    v_job.finished_at := NULL;
    v_job.expires_at := NULL;
  ELSIF p_old.finished_at IS NULL THEN
    v_job.finished_at := quota_now();
    v_job.expires_at := v_job.finished_at + make_interval(secs => p_results_seconds);
  END IF;
  IF v_job.finished_at IS NOT NULL THEN
    v_job.next_run_at := NULL;
  END IF;
  UPDATE jobs SET state = v_job.state, reason = v_job.reason, channel_id = v_job.channel_id, channel = v_job.channel,
      continuation = v_job.continuation, relisting = v_job.relisting, listed_at = v_job.listed_at, total = v_job.total,
      succeeded = v_job.succeeded, failed = v_job.failed, cached = v_job.cached, fetched = v_job.fetched,
      stored_bytes = v_job.stored_bytes, setbacks = v_job.setbacks, finished_at = v_job.finished_at,
      expires_at = v_job.expires_at, next_run_at = v_job.next_run_at, claim = v_job.claim,
      claimed_until = v_job.claimed_until, stored_claim = v_job.stored_claim
    WHERE id = v_job.id;
  IF v_job.state IN ('completed', 'failed', 'paused', 'canceled')
    AND (v_job.state, v_job.reason) IS DISTINCT FROM (p_old.state, p_old.reason) THEN
    PERFORM webhook_enqueue(v_job.organization_id, 'job.' || v_job.state, jsonb_build_object(
      'jobId', v_job.id, 'state', v_job.state, 'reason', v_job.reason, 'channelId', v_job.channel_id,
      'summary', jsonb_build_object(
        'total', v_job.total, 'succeeded', v_job.succeeded, 'failed', v_job.failed, 'cached', v_job.cached,
        'fetched', v_job.fetched, 'pending', v_job.total - v_job.succeeded - v_job.failed)));
  END IF;
  RETURN v_job;
END $$;

-- Why an organization cannot have another unfinished job; null when it can. Its lock must be held. Results that have expired
-- or were deleted do not count, although they are removed a little later.
CREATE FUNCTION job_refusal(
  p_organization_id text, p_unfinished_max integer, p_stored_max integer, p_bytes_max double precision
) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN count(*) FILTER (WHERE finished_at IS NULL) >= p_unfinished_max THEN 'too_many'
              WHEN count(*) >= p_stored_max THEN 'too_many_stored'
              WHEN sum(stored_bytes) >= p_bytes_max THEN 'too_much_stored' END
    FROM jobs WHERE organization_id = p_organization_id AND deleted_at IS NULL
      AND (expires_at IS NULL OR expires_at > quota_now())
$$;

-- Creates a job, or finds the one with the same idempotency key. Locks the organization first, as every function that also
-- locks a job does. No row for an organization that was deleted.
CREATE FUNCTION job_create(
  p_id text, p_organization_id text, p_key_id text, p_idempotency_key text, p_request_hash bytea, p_reference text,
  p_languages text[], p_video_limit integer, p_since text, p_on_quota text, p_unfinished_max integer,
  p_stored_max integer, p_bytes_max double precision
) RETURNS TABLE (outcome text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations := quota_lock(p_organization_id);
  v_now timestamptz;
BEGIN
  IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
    RETURN;
  END IF;
  SELECT * INTO job FROM jobs WHERE organization_id = p_organization_id AND idempotency_key = p_idempotency_key;
  IF FOUND THEN
    outcome := CASE WHEN job.request_hash = p_request_hash THEN 'known' ELSE 'conflict' END;
    RETURN NEXT;
    RETURN;
  END IF;
  outcome := job_refusal(p_organization_id, p_unfinished_max, p_stored_max, p_bytes_max);
  IF outcome IS NULL THEN
    outcome := 'created';
    -- The cursor of a list has the milliseconds.
    v_now := date_trunc('milliseconds', quota_now());
    INSERT INTO jobs (id, organization_id, key_id, idempotency_key, request_hash, reference, languages, video_limit,
                      since, on_quota, created_at, next_run_at)
      VALUES (p_id, p_organization_id, p_key_id, p_idempotency_key, p_request_hash, p_reference, p_languages,
              p_video_limit, p_since, p_on_quota, v_now, v_now)
      RETURNING * INTO job;
  END IF;
  RETURN NEXT;
END $$;

-- Cancels a job. A running slice keeps its claim, so that what it fetches is stored and charged.
CREATE FUNCTION job_cancel(p_organization_id text, p_id text, p_results_seconds double precision)
RETURNS TABLE (outcome text, old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_old jobs;
BEGIN
  SELECT * INTO v_old FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL
    FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := v_old.state;
  job := v_old;
  IF v_old.state = 'canceled' THEN
    outcome := 'unchanged';
  ELSIF v_old.finished_at IS NOT NULL THEN
    outcome := 'finished';
  ELSE
    outcome := 'changed';
    job.state := 'canceled';
    job.reason := NULL;
    job := job_store(v_old, job, p_results_seconds);
  END IF;
  RETURN NEXT;
END $$;

-- Continues a paused, canceled or failed job.
CREATE FUNCTION job_resume(
  p_organization_id text, p_id text, p_unfinished_max integer, p_bytes_max double precision,
  p_results_seconds double precision
) RETURNS TABLE (outcome text, old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_old jobs;
BEGIN
  PERFORM quota_lock(p_organization_id);
  SELECT * INTO v_old FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL
    FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := v_old.state;
  job := v_old;
  IF v_old.state = 'completed' THEN
    outcome := 'finished';
  ELSIF v_old.expires_at <= quota_now() THEN
    outcome := 'expired';
  ELSIF v_old.state NOT IN ('paused', 'canceled', 'failed') THEN
    outcome := 'unchanged';
  ELSIF v_old.finished_at IS NOT NULL THEN
    outcome := job_refusal(p_organization_id, p_unfinished_max, NULL, p_bytes_max);
  END IF;
  IF outcome IS NULL THEN
    outcome := 'changed';
    job.state := CASE WHEN job.started_at IS NULL THEN 'queued' WHEN job.listed_at IS NULL THEN 'listing' ELSE 'running' END;
    job.reason := NULL;
    job.setbacks := 0;
    job.next_run_at := quota_now();
    job := job_store(v_old, job, p_results_seconds);
  END IF;
  RETURN NEXT;
END $$;

-- Deletes a job. Its rows are removed later, in batches. An unfinished job is canceled without an event: its running slice keeps its claim,
-- so that what it fetches is charged, and the job does not go on.
CREATE FUNCTION job_delete(p_organization_id text, p_id text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE jobs SET deleted_at = quota_now(), next_run_at = NULL, idempotency_key = NULL,
      state = CASE WHEN finished_at IS NULL THEN 'canceled' ELSE state END,
      finished_at = coalesce(finished_at, quota_now())
    WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL;
  RETURN FOUND;
END $$;

-- Claims the next slice. Organizations take turns: it is one of the organization whose last slice is the longest ago. A
-- claim that has expired is that of a process that was killed, which counts as a setback.
CREATE FUNCTION job_claim(p_claim uuid, p_lease_seconds double precision, p_organization text)
RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := quota_now();
  v_due jobs;
BEGIN
  SELECT * INTO v_due FROM jobs due
    WHERE due.next_run_at <= v_now AND (due.claim IS NULL OR due.claimed_until <= v_now)
      AND (p_organization IS NULL OR due.organization_id = p_organization)
    ORDER BY (SELECT max(turn.last_turn) FROM jobs turn WHERE turn.organization_id = due.organization_id) NULLS FIRST,
             due.last_turn NULLS FIRST, due.created_at, due.id
    LIMIT 1 FOR UPDATE OF due SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := v_due.state;
  UPDATE jobs SET claim = p_claim, claimed_until = v_now + make_interval(secs => p_lease_seconds),
      last_turn = nextval('job_turns'), started_at = coalesce(started_at, v_now),
      setbacks = setbacks + (claim IS NOT NULL)::integer,
      state = CASE state WHEN 'queued' THEN 'listing' ELSE state END
    WHERE id = v_due.id RETURNING * INTO job;
  RETURN NEXT;
END $$;

-- Adds a page of the uploads. A job that reads its list again from the first page already has its videos: what is listed
-- above the first of them, on any page, was uploaded meanwhile and does not belong to the job.
CREATE FUNCTION job_commit_page(
  p_job_id text, p_claim uuid, p_channel_id text, p_channel text, p_video_ids text[], p_uploads text[],
  p_continuation text, p_results_seconds double precision
) RETURNS TABLE (old_state text, added integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_old jobs;
  v_known bigint := 0;
BEGIN
  SELECT * INTO v_old FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := v_old.state;
  job := v_old;
  IF v_old.relisting OR v_old.continuation IS NULL AND v_old.total > 0 THEN
    SELECT min(array_position(p_video_ids, video_id)) INTO v_known FROM job_videos
      WHERE job_id = p_job_id AND video_id = ANY (p_video_ids);
    job.relisting := v_known IS NULL;
  END IF;
  WITH new AS (
    SELECT page.* FROM unnest(p_video_ids, p_uploads) WITH ORDINALITY AS page (video_id, upload, place)
      WHERE NOT job.relisting AND page.place > v_known AND NOT EXISTS (
        SELECT FROM job_videos known WHERE known.job_id = p_job_id AND known.video_id = page.video_id)
      ORDER BY page.place LIMIT v_old.video_limit - v_old.total
  )
  INSERT INTO job_videos (job_id, position, video_id, upload)
    SELECT p_job_id, v_old.total + row_number() OVER (ORDER BY place), video_id, upload FROM new;
  GET DIAGNOSTICS added = ROW_COUNT;
  job.channel_id := p_channel_id;
  job.channel := p_channel;
  job.total := v_old.total + added;
  job.continuation := p_continuation;
  -- Pages that add nothing were read before, so that a list that is refused again and again is read ever more seldom.
  IF added > 0 THEN
    job.setbacks := 0;
  END IF;
  job.claim := NULL;
  job.claimed_until := NULL;
  IF p_continuation IS NULL OR job.total >= v_old.video_limit THEN
    job.continuation := NULL;
    job.listed_at := quota_now();
  END IF;
  IF v_old.finished_at IS NULL THEN
    job.reason := NULL;
    job.next_run_at := quota_now();
    job.state := CASE WHEN job.listed_at IS NULL THEN 'listing' WHEN job.succeeded + job.failed = job.total THEN 'completed'
      ELSE 'running' END;
  END IF;
  job := job_store(v_old, job, p_results_seconds);
  RETURN NEXT;
END $$;

-- Stores and charges a slice. Without the claim the reservations are released and nothing else happens. If the slice is
-- stored already, and only the response of that commit did not arrive, the job is returned again. The exceptions undo
-- everything: the slice then runs again, and finds in the cache what it has fetched.
CREATE FUNCTION job_commit_slice(
  p_job_id text, p_claim uuid, p_settlements json, p_videos json, p_entries bytea, p_change text, p_reason text,
  p_delay_seconds double precision, p_setbacks integer, p_restart_list boolean, p_results_seconds double precision,
  p_free_limit integer, p_pro_limit integer
) RETURNS TABLE (old_state text, charged integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_old jobs;
  v_now timestamptz;
  v_claimed boolean;
  v_settlement record;
  v_settled record;
  v_counts record;
  v_due timestamptz;
BEGIN
  PERFORM quota_lock((SELECT organization_id FROM jobs WHERE id = p_job_id));
  SELECT * INTO v_old FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
  v_claimed := FOUND;
  charged := 0;
  FOR v_settlement IN SELECT * FROM json_to_recordset(p_settlements) AS settlement (id uuid, fetched integer) LOOP
    SELECT * INTO v_settled FROM quota_settle(
      v_settlement.id, CASE WHEN v_claimed THEN v_settlement.fetched ELSE 0 END, p_free_limit, p_pro_limit);
    IF v_claimed AND (v_settled.first IS NOT TRUE OR v_settled.forfeited_count > 0) THEN
      RAISE EXCEPTION 'the reservation % no longer covers its slice', v_settlement.id USING ERRCODE = 'CT001';
    END IF;
    charged := charged + coalesce(v_settled.charged_count, 0);
  END LOOP;
  IF NOT v_claimed THEN
    SELECT * INTO job FROM jobs WHERE id = p_job_id AND stored_claim = p_claim;
    IF FOUND THEN
      old_state := job.state;
      RETURN NEXT;
    END IF;
    RETURN;
  END IF;
  v_now := quota_now();
  WITH given AS (
    SELECT *, sum(length) OVER (ORDER BY position) - length AS start FROM json_to_recordset(p_videos) AS video (
      position integer, state text, "retryAfterSeconds" double precision, cached boolean, length integer,
      bytes integer, crc bigint)
  ), changed AS (
    UPDATE job_videos video SET state = given.state, cached = given.cached, entry_bytes = given.bytes,
        entry_crc = given.crc, retries = video.retries + (given."retryAfterSeconds" IS NOT NULL)::integer,
        retry_at = v_now + make_interval(secs => given."retryAfterSeconds"),
        entry = CASE WHEN given.length > 0 THEN substring(p_entries FROM given.start::integer + 1 FOR given.length) END
      FROM given
      WHERE video.job_id = p_job_id AND video.position = given.position AND video.state = 'pending'
      RETURNING video.state, video.cached
  )
  SELECT count(*) AS videos, count(*) FILTER (WHERE state = 'failed') AS failed,
         count(*) FILTER (WHERE cached) AS cached, count(*) FILTER (WHERE NOT cached) AS fetched
    INTO v_counts FROM changed;
  IF v_counts.videos <> json_array_length(p_videos) OR v_counts.fetched <> charged THEN
    RAISE EXCEPTION 'the slice does not agree with the job %', p_job_id USING ERRCODE = 'CT002';
  END IF;
  old_state := v_old.state;
  job := v_old;
  job.succeeded := job.succeeded + v_counts.cached + v_counts.fetched;
  job.failed := job.failed + v_counts.failed;
  job.cached := job.cached + v_counts.cached;
  job.fetched := job.fetched + v_counts.fetched;
  job.stored_bytes := job.stored_bytes + coalesce(octet_length(p_entries), 0);
  job.claim := NULL;
  job.claimed_until := NULL;
  job.stored_claim := p_claim;
  IF p_restart_list THEN
    job.continuation := NULL;
  END IF;
  IF v_old.finished_at IS NULL THEN
    job.setbacks := p_setbacks;
    job.reason := NULL;
    job.next_run_at := v_now + make_interval(secs => coalesce(p_delay_seconds, 0));
    IF job.listed_at IS NOT NULL AND job.succeeded + job.failed = job.total THEN
      job.state := 'completed';
    ELSIF p_change IS NOT NULL THEN
      job.state := p_change;
      job.reason := p_reason;
      IF p_delay_seconds IS NULL THEN
        job.next_run_at := NULL;
      END IF;
    ELSIF job.listed_at IS NULL THEN
      job.state := 'listing';
    ELSE
      job.state := 'running';
    END IF;
    PERFORM FROM job_videos WHERE job_id = p_job_id AND state = 'pending' AND retry_at IS NULL LIMIT 1;
    IF job.listed_at IS NOT NULL AND job.next_run_at IS NOT NULL AND NOT FOUND THEN
      SELECT min(retry_at) INTO v_due FROM job_videos WHERE job_id = p_job_id AND state = 'pending';
      job.next_run_at := greatest(job.next_run_at, v_due);
    END IF;
  END IF;
  job := job_store(v_old, job, p_results_seconds);
  RETURN NEXT;
END $$;

-- What changes without a slice: jobs of deleted organizations end, and paused ones go on when their organization has room
-- in its quota, or a plan that includes jobs, again.
CREATE FUNCTION job_sweep(
  p_plans text[], p_free_limit integer, p_pro_limit integer, p_results_seconds double precision
) RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := quota_now();
  v_found record;
  v_old jobs;
BEGIN
  FOR v_found IN
    SELECT candidate.id, organization.deleted_at FROM jobs candidate
      JOIN organizations organization ON organization.id = candidate.organization_id
      WHERE candidate.finished_at IS NULL AND candidate.deleted_at IS NULL AND (
        organization.deleted_at IS NOT NULL
        OR candidate.state = 'paused' AND candidate.reason = 'plan_changed' AND organization.plan = ANY (p_plans)
        OR candidate.state = 'paused' AND candidate.reason = 'plan_limit_exceeded' AND coalesce(
          (SELECT used FROM quota_periods WHERE organization_id = organization.id
             AND period_start = quota_period(v_now)), 0)
          < quota_limit(organization.monthly_limit, organization.plan, p_free_limit, p_pro_limit))
      LIMIT 200 FOR UPDATE OF candidate SKIP LOCKED
  LOOP
    SELECT * INTO v_old FROM jobs WHERE id = v_found.id;
    old_state := v_old.state;
    job := v_old;
    job.reason := NULL;
    IF v_found.deleted_at IS NOT NULL THEN
      job.state := 'canceled';
    ELSE
      job.state := CASE WHEN job.listed_at IS NULL THEN 'listing' ELSE 'running' END;
      job.next_run_at := v_now;
    END IF;
    job := job_store(v_old, job, p_results_seconds);
    RETURN NEXT;
  END LOOP;
END $$;

-- Removes results that have expired or were deleted, some rows of one job at a time, and the job itself: at once when it
-- was deleted, and a week after its results when it has expired. A job whose slice is running stays until that is charged.
-- Returns the number of removed rows.
CREATE FUNCTION job_remove_batch(p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := quota_now();
  v_job jobs;
  v_rows integer;
  v_bytes bigint;
BEGIN
  SELECT * INTO v_job FROM jobs job
    WHERE coalesce(job.deleted_at, job.expires_at) <= v_now AND (job.claim IS NULL OR job.claimed_until <= v_now) AND (
      job.deleted_at IS NOT NULL OR job.expires_at <= v_now - interval '7 days'
      OR EXISTS (SELECT FROM job_videos WHERE job_id = job.id))
    ORDER BY coalesce(job.deleted_at, job.expires_at) LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  WITH removed AS (
    DELETE FROM job_videos WHERE job_id = v_job.id AND position IN (
      SELECT position FROM job_videos WHERE job_id = v_job.id ORDER BY position LIMIT p_rows_max)
      RETURNING octet_length(entry) AS stored
  )
  SELECT count(*), coalesce(sum(stored), 0) INTO v_rows, v_bytes FROM removed;
  IF v_rows = p_rows_max OR v_job.deleted_at IS NULL AND v_job.expires_at > v_now - interval '7 days' THEN
    UPDATE jobs SET stored_bytes = greatest(0, stored_bytes - v_bytes), claim = NULL, claimed_until = NULL
      WHERE id = v_job.id;
    RETURN v_rows;
  END IF;
  DELETE FROM jobs WHERE id = v_job.id;
  RETURN v_rows + 1;
END $$;
`;

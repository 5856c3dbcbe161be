-- The slices of archive jobs. A slice is claimed, and its results are stored only while its claim holds, in the transaction
-- that settles its reservation. So a process can be killed at any point: what was fetched is stored and charged together, or
-- neither.

DROP FUNCTION IF EXISTS job_claim(uuid, double precision, text);

-- What the next slice of a job is about: 'listing' while a page of its list is due, else 'videos'. Without p_lists the videos have
-- their turn although a page is due; null when nothing has.
CREATE OR REPLACE FUNCTION job_slice_kind(p_job jobs, p_lists boolean) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_kind text := CASE WHEN p_job.check_seconds IS NULL AND p_job.listed_at IS NULL
                        AND coalesce(is_due(p_job.list_retry_at, job_longest(p_job)), true) THEN 'listing' ELSE 'videos' END;
BEGIN
  RETURN CASE WHEN p_lists OR v_kind = 'videos' THEN v_kind WHEN p_job.videos_at <= v_now THEN 'videos' END;
END $$;

-- A due job of an organization that no slice runs, locked: the one that is due the longest. A slice that ends its process again
-- and again would end every process, so it is repeated after growing pauses.
CREATE OR REPLACE FUNCTION job_next(p_organization_id text, p_lists boolean) RETURNS jobs LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_job jobs;
BEGIN
  -- Two statements, because each reads one index in its order.
  IF p_lists THEN
    SELECT * INTO v_job FROM jobs due
      WHERE organization_id = p_organization_id AND next_run_at <= v_now AND job_is_free(due, v_now)
      ORDER BY next_run_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  ELSE
    SELECT * INTO v_job FROM jobs due
      WHERE organization_id = p_organization_id AND videos_at <= v_now AND job_is_free(due, v_now)
      ORDER BY videos_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  END IF;
  RETURN v_job;
END $$;

-- Whether no slice of a job runs, and none that ended its process did shortly before. A slice has two hours at the most.
CREATE OR REPLACE FUNCTION job_is_free(p_job jobs, p_now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_job.claim IS NULL OR p_job.claimed_until > p_now + interval '2 hours'
    OR p_job.claimed_until <= p_now - CASE WHEN p_job.setbacks = 0 THEN interval '0' ELSE
      make_interval(secs => least(900, 30 * 2 ^ least(p_job.setbacks - 1, 10))) END
$$;

-- Makes due what an organization stored while the clock was ahead: its turns, and jobs that are due later than they can be.
-- Returns whether there are such jobs.
CREATE OR REPLACE FUNCTION job_rewind(p_organization_id text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_is_due boolean;
BEGIN
  UPDATE jobs SET next_run_at = v_now WHERE id = ANY (ARRAY(
    SELECT id FROM jobs job WHERE organization_id = p_organization_id
      AND next_run_at > v_now + interval '6 hours' AND next_run_at > v_now + job_longest(job) FOR UPDATE SKIP LOCKED));
  v_is_due := FOUND;
  PERFORM FROM job_queues WHERE organization_id = p_organization_id
    AND greatest(turn_at, videos_turn_at, last_turn_at) > v_now + interval '1 hour' FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    UPDATE job_queues SET turn_at = v_now, last_turn_at = least(last_turn_at, v_now),
        videos_turn_at = CASE WHEN videos_turn_at IS NOT NULL THEN v_now END
      WHERE organization_id = p_organization_id;
  END IF;
  RETURN v_is_due;
END $$;

-- Sets the turn of an organization of which nothing is due: when the first of its jobs is, and after an hour at the latest.
CREATE OR REPLACE FUNCTION job_pass(p_organization_id text, p_lists boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
BEGIN
  PERFORM FROM job_queues WHERE organization_id = p_organization_id
    AND NOT EXISTS (SELECT FROM jobs WHERE p_lists AND organization_id = p_organization_id AND next_run_at <= v_now)
    AND NOT EXISTS (SELECT FROM jobs WHERE NOT p_lists AND organization_id = p_organization_id AND videos_at <= v_now)
    FOR UPDATE SKIP LOCKED;
  -- A job that was created since then is seen by a later statement only.
  IF FOUND AND p_lists THEN
    UPDATE job_queues SET
        turn_at = job_turn(NULL, v_now, (SELECT min(next_run_at) FROM jobs WHERE organization_id = p_organization_id))
      WHERE organization_id = p_organization_id;
  ELSIF FOUND THEN
    UPDATE job_queues SET
        videos_turn_at = job_turn(NULL, v_now, (SELECT min(videos_at) FROM jobs WHERE organization_id = p_organization_id))
      WHERE organization_id = p_organization_id;
  END IF;
END $$;

-- Claims the next slice. Organizations take turns: it is one of the organization whose last slice is the longest ago, of the
-- job that is due the longest. It passes over the organizations whose slices all run, and waits for none. A claim that has
-- expired is that of a process that was killed, which counts as a setback. Without p_lists it is a slice of videos.
CREATE OR REPLACE FUNCTION job_claim(p_claim uuid, p_lease_seconds double precision, p_organization text, p_lists boolean)
RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_organization text;
BEGIN
  FOR v_organization IN
    SELECT organization_id FROM job_queues
      WHERE turn_at > v_now + interval '1 hour' OR videos_turn_at > v_now + interval '1 hour' LIMIT 100
  LOOP
    PERFORM job_rewind(v_organization);
  END LOOP;
  v_now := clock_now();
  FOR v_organization IN
    -- The limits are more than the slices that run: other organizations without a free job leave the index.
    (SELECT organization_id FROM job_queues WHERE p_lists AND p_organization IS NULL AND turn_at <= v_now
       ORDER BY turn_at LIMIT 1000)
    UNION ALL
    (SELECT organization_id FROM job_queues WHERE NOT p_lists AND p_organization IS NULL AND videos_turn_at <= v_now
       ORDER BY videos_turn_at LIMIT 1000)
    UNION ALL SELECT p_organization WHERE p_organization IS NOT NULL
  LOOP
    job := job_next(v_organization, p_lists);
    IF job.id IS NULL AND job_rewind(v_organization) THEN
      job := job_next(v_organization, p_lists);
    END IF;
    EXIT WHEN job.id IS NOT NULL;
    PERFORM job_pass(v_organization, p_lists);
  END LOOP;
  IF job.id IS NULL THEN
    RETURN;
  END IF;
  -- Another claim that holds the row sets the same time.
  UPDATE job_queues SET turn_at = v_now, last_turn_at = v_now,
      videos_turn_at = CASE WHEN is_due(videos_turn_at, interval '1 hour') THEN v_now ELSE videos_turn_at END
    WHERE organization_id = (
      SELECT organization_id FROM job_queues WHERE organization_id = job.organization_id FOR UPDATE SKIP LOCKED);
  old_state := job.state;
  job.setbacks := job.setbacks + (job.claim IS NOT NULL)::integer;
  job.claim := p_claim;
  job.claimed_until := v_now + make_interval(secs => p_lease_seconds);
  job := job_store(job_transition(job, 'claim'));
  RETURN NEXT;
END $$;

-- Adds a page of the uploads. A list that ends incomplete is read again from its first page after list_retry_seconds; null
-- for every other page. When three reads over at least an hour end at the same upload, list_end, it is complete: what it states
-- beyond that is hidden.
CREATE OR REPLACE FUNCTION job_commit_page(p_job_id text, p_claim uuid, p_page json)
RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_page record;
  v_added integer;
BEGIN
  SELECT * INTO v_page FROM json_to_record(p_page) AS page (
    channel_id text, channel text, playlist text, uploads json, continuation text, list_retry_seconds double precision,
    list_end text, hidden integer);
  SELECT * INTO job FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := job.state;
  IF v_page.list_end = job.list_end THEN
    job.list_end_reads := job.list_end_reads + 1;
  ELSIF v_page.list_end IS NOT NULL THEN
    job.list_end := v_page.list_end;
    job.list_ended_at := clock_now();
    job.list_end_reads := 1;
  END IF;
  IF v_page.list_end IS NOT NULL AND job.list_end_reads >= 3 AND job.list_ended_at <= clock_now() - interval '1 hour' THEN
    v_page.list_retry_seconds := NULL;
  END IF;
  INSERT INTO job_videos (job_id, position, video_id, upload)
    SELECT p_job_id, job.last_position + row_number() OVER (ORDER BY place), listed.item->>'video_id', listed.item->>'upload'
      FROM json_array_elements(v_page.uploads) WITH ORDINALITY AS listed (item, place)
      WHERE NOT EXISTS (
        SELECT FROM job_videos known WHERE known.job_id = p_job_id AND known.video_id = listed.item->>'video_id')
      ORDER BY place LIMIT job.video_limit - job.total;
  GET DIAGNOSTICS v_added = ROW_COUNT;
  job.channel_id := v_page.channel_id;
  job.channel := v_page.channel;
  job.playlist := coalesce(v_page.playlist, job.playlist);
  job.total := job.total + v_added;
  job.last_position := job.last_position + v_added;
  job.continuation := v_page.continuation;
  IF coalesce(v_page.continuation, v_page.list_retry_seconds::text) IS NULL OR job.total >= job.video_limit THEN
    job.listed_at := clock_now();
  END IF;
  job.list_retry_at := coalesce(clock_now() + make_interval(secs => v_page.list_retry_seconds), job.list_retry_at);
  IF v_page.continuation IS NULL THEN
    job.hidden := coalesce(v_page.hidden, 0);
  END IF;
  -- Pages that add nothing were read before, so that a list that is refused again and again is read ever more seldom.
  job.setbacks := CASE WHEN v_added > 0 THEN 0 ELSE job.setbacks + (v_page.list_retry_seconds IS NOT NULL)::integer END;
  job.claim := NULL;
  job.claimed_until := NULL;
  job := job_store(job_transition(job, 'page'));
  RETURN NEXT;
END $$;

-- Stores and charges a slice, and what its outcome makes of its job, unless the job is complete or was canceled meanwhile. Without the
-- claim its reservation is released and nothing else happens. The exceptions undo everything: the slice then runs again, and
-- finds in the cache what it has fetched.
CREATE OR REPLACE FUNCTION job_commit_slice(
  p_job_id text, p_claim uuid, p_slice json, p_entries bytea, p_free_limit integer, p_pro_limit integer
) RETURNS TABLE (old_state text, charged integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_slice record;
  v_claimed boolean;
  v_settled record;
  v_counts record;
  v_former jobs;
  v_now timestamptz;
BEGIN
  SELECT * INTO v_slice FROM json_to_record(p_slice) AS slice (
    reservation_id uuid, fetched integer, videos json, outcome text, seconds double precision, restart_list boolean);
  PERFORM organization_lock((SELECT organization_id FROM jobs WHERE id = p_job_id));
  SELECT * INTO job FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
  v_claimed := FOUND;
  charged := 0;
  IF v_slice.reservation_id IS NOT NULL THEN
    SELECT * INTO v_settled
      FROM quota_settle(v_slice.reservation_id, CASE WHEN v_claimed THEN v_slice.fetched ELSE 0 END, p_free_limit, p_pro_limit);
    IF v_claimed AND (v_settled.first IS NOT TRUE OR v_settled.forfeited_count > 0) THEN
      RAISE EXCEPTION 'the reservation % no longer covers its slice', v_slice.reservation_id USING ERRCODE = 'CT001';
    END IF;
    charged := v_settled.charged_count;
  END IF;
  IF NOT v_claimed THEN
    RETURN;
  END IF;
  old_state := job.state;
  v_now := clock_now();
  WITH given AS (
    SELECT *, sum(length) OVER (ORDER BY position) - length AS start,
        -- The results so far are counted. The row of the job is locked, so the order of the sequences is that of the commits.
        job.succeeded + job.failed + row_number() OVER (PARTITION BY state = 'pending' ORDER BY position) AS sequence
      FROM json_to_recordset(v_slice.videos) AS video (
        position integer, state text, code text, retries integer, "retryAfterSeconds" double precision, cached boolean,
        length integer, bytes integer, crc bigint, event json)
  ), changed AS (
    UPDATE job_videos video SET state = given.state, cached = given.cached, entry_bytes = given.bytes,
        entry_crc = given.crc, retries = coalesce(given.retries, video.retries + (given."retryAfterSeconds" IS NOT NULL)::integer),
        retry_at = CASE WHEN given.state = 'pending'
                        THEN coalesce(video.decided_at, v_now + make_interval(secs => given."retryAfterSeconds")) END,
        error_code = given.code,
        sequence = CASE WHEN given.state <> 'pending' THEN given.sequence END,
        mark = CASE WHEN given.state <> 'pending' THEN new_mark() END,
        decided_at = CASE WHEN given.state <> 'pending' THEN v_now END,
        entry = CASE WHEN given.length > 0 THEN substring(p_entries FROM given.start::integer + 1 FOR given.length) END
      FROM given
      WHERE video.job_id = p_job_id AND video.position = given.position AND video.state = 'pending'
      RETURNING video.state, video.cached, video.sequence, given.event
  )
  SELECT count(*) AS videos, count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE cached) AS cached,
         count(*) FILTER (WHERE NOT cached) AS fetched,
         array_agg(event ORDER BY sequence) FILTER (WHERE sequence IS NOT NULL) AS events
    INTO v_counts FROM changed;
  IF v_counts.videos <> json_array_length(v_slice.videos) OR v_counts.fetched <> charged THEN
    RAISE EXCEPTION 'the slice does not agree with the job %', p_job_id USING ERRCODE = 'CT002';
  END IF;
  v_former := job;
  job.succeeded := job.succeeded + v_counts.cached + v_counts.fetched;
  job.failed := job.failed + v_counts.failed;
  job.cached := job.cached + v_counts.cached;
  job.fetched := job.fetched + v_counts.fetched;
  job.stored_bytes := job.stored_bytes + octet_length(p_entries);
  job.claim := NULL;
  job.claimed_until := NULL;
  IF v_slice.restart_list THEN
    job.continuation := NULL;
  END IF;
  job := job_transition(job, 'slice', v_slice.outcome, v_slice.seconds);
  IF job.check_seconds IS NOT NULL THEN
    -- The source of one that goes on is read again.
    UPDATE sources SET next_check_at = v_now, scheduled_at = v_now
      WHERE id = job.source_id AND next_check_at IS NULL AND job.state = 'running';
    IF v_counts.events IS NOT NULL AND job.deleted_at IS NULL THEN
      PERFORM log_append(v_former, v_counts.events);
      PERFORM subscription_upload_events(job, cardinality(v_counts.events));
    END IF;
  END IF;
  job := job_store(job);
  RETURN NEXT;
END $$;

-- What changes without a slice: paused jobs go on when their organization, and their key, have room in the quota, or a plan
-- that includes jobs, again, and end when it was deleted. Each organization is looked at once, however many jobs it has.
CREATE OR REPLACE FUNCTION job_sweep(p_plans text[], p_free_limit integer, p_pro_limit integer)
RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_waiting record;
BEGIN
  FOR v_waiting IN
    WITH RECURSIVE waiting AS (
      (SELECT organization_id, reason FROM jobs
         WHERE state = 'paused' AND (next_run_at IS NULL OR reason = 'plan_limit_exceeded') ORDER BY 1, 2 LIMIT 1)
      UNION ALL SELECT following.* FROM waiting, LATERAL (
        SELECT organization_id, reason FROM jobs
          WHERE state = 'paused' AND (next_run_at IS NULL OR reason = 'plan_limit_exceeded')
            AND (organization_id, reason) > (waiting.organization_id, waiting.reason) ORDER BY 1, 2 LIMIT 1) following
    ), ready AS MATERIALIZED (
      SELECT waiting.*, organization.deleted_at IS NOT NULL AS is_deleted
        FROM waiting JOIN organizations organization ON organization.id = waiting.organization_id
        WHERE organization.deleted_at IS NOT NULL
          OR waiting.reason = 'plan_changed' AND organization.plan = ANY (p_plans)
          OR waiting.reason = 'plan_limit_exceeded' AND coalesce(
            (SELECT used FROM quota_periods WHERE organization_id = organization.id
               AND period_start = quota_period(clock_now())), 0)
            < quota_limit(organization.monthly_limit, organization.plan, p_free_limit, p_pro_limit)
    ), candidate AS (
      SELECT jobs AS job, jobs.organization_id, CASE WHEN ready.is_deleted THEN 'organization_deleted' END AS why
        FROM ready JOIN jobs ON jobs.organization_id = ready.organization_id AND jobs.reason = ready.reason
          AND jobs.state = 'paused' AND (jobs.next_run_at IS NULL OR jobs.reason = 'plan_limit_exceeded')
        WHERE ready.is_deleted OR ready.reason <> 'plan_limit_exceeded'
          OR NOT quota_key_is_exhausted(jobs.key_id, clock_now())
        LIMIT 200 FOR UPDATE OF jobs SKIP LOCKED
    )
    -- In one order, because job_due locks the queues of the organizations.
    SELECT * FROM candidate ORDER BY organization_id
  LOOP
    job := v_waiting.job;
    old_state := job.state;
    job := job_store(job_transition(job, 'sweep', v_waiting.why));
    RETURN NEXT;
  END LOOP;
END $$;

-- Removes results that have expired or were deleted, some rows of one job at a time, and then the job itself: at once when
-- it was deleted, and a week after its results when it has expired. Organizations take turns. A job whose slice is running stays
-- until that is charged. Those of a subscription that goes on are removed by log_remove_batch. Returns the number of removed rows.
CREATE OR REPLACE FUNCTION job_remove_batch(p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_organization text;
  v_job jobs;
  v_removed integer := 0;
BEGIN
  FOR v_organization IN
    SELECT organization_id FROM job_queues WHERE remove_turn_at <= v_now OR remove_turn_at > v_now + interval '1 hour'
      ORDER BY remove_turn_at LIMIT 100
  LOOP
    SELECT * INTO v_job FROM jobs job
      WHERE organization_id = v_organization AND remove_at <= v_now AND (claim IS NULL OR is_due(claimed_until, interval '2 hours'))
      ORDER BY remove_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      v_removed := job_remove_rows(v_job, p_rows_max);
    END IF;
    PERFORM FROM job_queues WHERE organization_id = v_organization FOR UPDATE SKIP LOCKED;
    -- A job that was deleted since then is seen by a later statement only.
    IF FOUND THEN
      UPDATE job_queues SET remove_turn_at = job_remove_turn(NULL, (SELECT min(remove_at) FROM jobs WHERE organization_id = v_organization))
        WHERE organization_id = v_organization;
    END IF;
    EXIT WHEN v_removed > 0;
  END LOOP;
  RETURN v_removed;
END $$;

-- Removes some rows of a job, or the job. Returns how many, at least one.
CREATE OR REPLACE FUNCTION job_remove_rows(p_job jobs, p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_removed record;
BEGIN
  WITH removed AS (
    DELETE FROM job_videos WHERE job_id = p_job.id AND position = ANY (ARRAY(
      SELECT position FROM job_videos WHERE job_id = p_job.id ORDER BY position LIMIT p_rows_max))
      RETURNING video_id, octet_length(entry) AS stored
  )
  SELECT count(*) AS videos, coalesce(sum(stored), 0) AS bytes, array_agg(video_id) AS ids INTO v_removed FROM removed;
  IF p_job.check_seconds IS NOT NULL THEN
    PERFORM log_release(p_job.organization_id, p_job.id, v_removed.ids);
  END IF;
  IF v_removed.videos < p_rows_max AND (p_job.deleted_at IS NOT NULL OR p_job.expires_at <= clock_now() - interval '7 days') THEN
    DELETE FROM jobs WHERE id = p_job.id;
    PERFORM source_release(p_job.source_id);
    RETURN v_removed.videos + 1;
  END IF;
  UPDATE jobs SET stored_bytes = stored_bytes - v_removed.bytes, removed = removed + v_removed.videos,
      remove_at = CASE WHEN v_removed.videos < p_rows_max THEN expires_at + interval '7 days' ELSE remove_at END
    WHERE id = p_job.id;
  RETURN greatest(v_removed.videos, 1);
END $$;

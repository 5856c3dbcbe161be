-- Subscriptions are jobs with check_seconds, which never finish by themselves: 'running', 'paused', or 'canceled' when their
-- organization was deleted. A slice is one page of a check while next_check_at is due, else one of videos.

-- The time of the next check after a time. Checks of one channel with the same interval, or with one that divides it, are due
-- at the same time, so that one read serves them all; those of different channels are spread over the interval.
CREATE OR REPLACE FUNCTION subscription_tick(p_channel_id text, p_seconds integer, p_after timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT to_timestamp((floor((extract(epoch FROM p_after) - shift) / p_seconds) + 1) * p_seconds + shift)
    FROM (SELECT ('x' || left(md5(p_channel_id), 8))::bit(32)::bigint % p_seconds AS shift) spread
$$;

-- When a subscription has its next slice: the next check, or a pending video before it, but none of them before p_videos_at.
-- While it is paused it has checks only, or nothing until its caller or its plan lets it go on; without quota it has both, for
-- what costs nothing.
CREATE OR REPLACE FUNCTION subscription_next_run(p_job jobs, p_videos_at timestamptz)
RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_job.state = 'paused' AND p_job.reason <> 'plan_limit_exceeded' THEN
    RETURN CASE WHEN p_job.reason NOT IN ('paused_by_caller', 'plan_changed') THEN p_job.next_check_at END;
  ELSIF p_job.next_check_at <= p_videos_at THEN
    RETURN p_job.next_check_at;
  ELSIF EXISTS (SELECT FROM job_videos WHERE job_id = p_job.id AND state = 'pending' AND coalesce(retry_at, p_videos_at) <= p_videos_at) THEN
    RETURN p_videos_at;
  END IF;
  RETURN least(p_job.next_check_at, (SELECT min(retry_at) FROM job_videos WHERE job_id = p_job.id AND state = 'pending'));
END $$;

DROP FUNCTION IF EXISTS subscription_change(text, text, integer, text, double precision, text);
DROP FUNCTION IF EXISTS subscription_change(text, text, integer, text, double precision);

-- Changes the interval of a subscription and fields of its request, and pauses it or lets it go on with a check, which is requested as by
-- subscription_check: it is due p_seconds_min after the last request. Null for what stays. p_state is 'running' or 'paused'. A
-- running slice keeps its claim, so that what it fetches is stored and charged. One that changes is charged to p_key_id from then on,
-- as by job_resume.
CREATE OR REPLACE FUNCTION subscription_change(
  p_organization_id text, p_id text, p_check_seconds integer, p_state text, p_seconds_min double precision,
  p_key_id text DEFAULT NULL, p_request jsonb DEFAULT NULL
) RETURNS TABLE (old_state text, old_job jobs, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
BEGIN
  SELECT * INTO job FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND check_seconds IS NOT NULL
    AND finished_at IS NULL AND deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := job.state;
  old_job := job;
  IF p_check_seconds <> job.check_seconds THEN
    job.check_seconds := p_check_seconds;
    -- Checks that are due, and those of a channel that was not found yet, stay as they are.
    IF job.next_check_at > v_now AND job.setbacks = 0 AND job.channel_id IS NOT NULL THEN
      job.next_check_at := subscription_tick(job.channel_id, p_check_seconds, v_now);
    END IF;
  END IF;
  IF p_request <> '{}' THEN
    job.created_request := coalesce(job.created_request, job.request);
    job.request := job.request::jsonb || p_request;
    job.labels := coalesce(p_request -> 'labels', job.labels);
  END IF;
  IF p_state = 'paused' THEN
    job := job_transition(job, 'pause');
  ELSIF p_state = 'running' AND job.state = 'paused' THEN
    job := job_transition(job, 'resume');
    -- One that was requested for a later time has not been made.
    IF job.check_requested_at IS NULL OR job.check_requested_at <= v_now THEN
      job.check_requested_at := greatest(v_now, job.check_requested_at + make_interval(secs => p_seconds_min));
    END IF;
    job.next_check_at := job.check_requested_at;
    job.continuation := NULL;
  END IF;
  IF job IS DISTINCT FROM old_job THEN
    job.key_id := coalesce(p_key_id, job.key_id);
  END IF;
  UPDATE jobs SET key_id = job.key_id, request = job.request, created_request = job.created_request, labels = job.labels,
      check_seconds = job.check_seconds, next_check_at = job.next_check_at, state = job.state, reason = job.reason,
      setbacks = job.setbacks, unread_since = job.unread_since, check_requested_at = job.check_requested_at,
      continuation = job.continuation, next_run_at = subscription_next_run(job, greatest(job.next_run_at, v_now))
    WHERE id = p_id RETURNING * INTO job;
  RETURN NEXT;
END $$;

-- Makes a check due at once, which reads the list from its first page, after the one that is running; and the pending videos
-- too, for which that is not one of their tries: decided_at keeps the time of the next one. Nothing changes, and
-- retry_after_seconds is not null, within p_seconds_min of the last request; nor while the caller has paused the subscription.
CREATE OR REPLACE FUNCTION subscription_check(p_organization_id text, p_id text, p_seconds_min double precision)
RETURNS TABLE (retry_after_seconds integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_runs boolean;
BEGIN
  SELECT * INTO job FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND check_seconds IS NOT NULL
    AND finished_at IS NULL AND deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF job.check_requested_at > v_now - make_interval(secs => p_seconds_min) THEN
    retry_after_seconds := greatest(1, ceil(p_seconds_min - extract(epoch FROM v_now - job.check_requested_at)));
  ELSIF job.reason IS DISTINCT FROM 'paused_by_caller' THEN
    UPDATE job_videos SET retry_at = v_now, decided_at = retry_at, retries = greatest(1, retries - 1)
      WHERE job_id = p_id AND state = 'pending' AND retry_at > v_now;
    v_runs := job.next_check_at <= v_now AND (job.continuation IS NOT NULL OR job.claim IS NOT NULL);
    UPDATE jobs SET check_requested_at = v_now, next_run_at = v_now,
        next_check_at = CASE WHEN v_runs THEN next_check_at ELSE v_now END, continuation = CASE WHEN v_runs THEN continuation END
      WHERE id = p_id RETURNING * INTO job;
  END IF;
  RETURN NEXT;
END $$;

-- Stores one page of a check: its new uploads, and what it decides and states anew about earlier ones. The walk goes on at the
-- continuation, or has ended with an upload that was seen; else the list is read again from its first page. No row without the
-- claim. A check that was requested meanwhile is due when the walk has ended, and that of a pause that has ended at once. An
-- upload that is deleted between the readings of two pages moves another one past both, so a walk of several pages is repeated
-- at once until it finds nothing new. One that begins anew forgets what is undecided.
CREATE OR REPLACE FUNCTION subscription_commit_check(p_job_id text, p_claim uuid, p_check json)
RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_check record;
  v_now timestamptz;
  v_added record;
  v_delivered integer := 0;
  v_repeated boolean;
  v_blocked text := 'upstream_blocked';
BEGIN
  SELECT * INTO v_check FROM json_to_record(p_check) AS page (
    due_at timestamptz, channel_id text, channel text, added json, decided text, changed json, continuation text,
    ended boolean, sees_all boolean);
  SELECT * INTO job FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := job.state;
  v_now := clock_now();
  IF job.continuation IS NULL THEN
    job.read_position := job.last_position;
    DELETE FROM job_videos WHERE job_id = p_job_id AND position > job.seen_position AND state = 'undecided';
  ELSIF v_check.decided <> 'undecided' THEN
    UPDATE job_videos SET state = v_check.decided, upload = CASE WHEN v_check.decided = 'pending' THEN upload ELSE '{}' END
      WHERE job_id = p_job_id AND position > job.seen_position AND state = 'undecided';
    IF v_check.decided = 'pending' THEN
      GET DIAGNOSTICS v_delivered = ROW_COUNT;
    END IF;
  END IF;
  WITH added AS (
    INSERT INTO job_videos (job_id, position, video_id, upload, state)
      SELECT p_job_id, job.last_position + row_number() OVER (ORDER BY place), item->>'video_id', item->>'upload', item->>'state'
        FROM json_array_elements(v_check.added) WITH ORDINALITY AS listed (item, place)
      RETURNING state
  )
  SELECT count(*) AS videos, count(*) FILTER (WHERE state = 'pending') AS pending INTO v_added FROM added;
  UPDATE job_videos video SET upload = given.upload, retries = 0, retry_at = NULL, decided_at = NULL
    FROM json_to_recordset(v_check.changed) AS given (position integer, upload text)
    WHERE video.job_id = p_job_id AND video.position = given.position AND video.state = 'pending';
  v_repeated := job.next_check_at <> v_check.due_at
    OR v_check.ended AND job.continuation IS NOT NULL AND job.last_position + v_added.videos > job.read_position;
  IF v_repeated THEN
    job.next_check_at := v_now;
  ELSIF v_check.continuation IS NULL THEN
    job.next_check_at := CASE WHEN job.check_requested_at > v_check.due_at THEN job.check_requested_at
                              ELSE subscription_tick(v_check.channel_id, job.check_seconds, v_now) END;
  END IF;
  -- The platform blocks the videos, of which a check does not know whether that has ended.
  IF job.reason IS DISTINCT FROM 'upstream_blocked' OR job.unread_since IS NOT NULL THEN
    job.setbacks := 0;
    v_blocked := NULL;
  END IF;
  -- A pause for which checks go on stays: they do not know whether it has ended.
  IF job.finished_at IS NULL AND coalesce(job.reason, '') NOT IN ('paused_by_caller', 'plan_limit_exceeded') THEN
    job.state := 'running';
    job.reason := CASE WHEN v_check.continuation IS NULL AND NOT v_check.ended THEN 'list_incomplete' ELSE v_blocked END;
  END IF;
  UPDATE jobs SET channel_id = v_check.channel_id, channel = v_check.channel, total = total + v_delivered + v_added.pending,
      last_position = last_position + v_added.videos, sees_all = v_check.sees_all, read_position = job.read_position,
      continuation = CASE WHEN NOT v_repeated THEN v_check.continuation END,
      seen_position = CASE WHEN v_check.ended AND NOT v_repeated THEN last_position + v_added.videos ELSE seen_position END,
      seen_at = CASE WHEN v_check.ended AND NOT v_repeated THEN v_now ELSE seen_at END,
      checked_at = CASE WHEN v_check.continuation IS NULL AND NOT v_repeated THEN v_now ELSE checked_at END,
      unread_since = NULL, setbacks = job.setbacks, claim = NULL, claimed_until = NULL, state = job.state,
      reason = job.reason, next_check_at = job.next_check_at,
      next_run_at = CASE WHEN finished_at IS NULL THEN subscription_next_run(job, v_now) END
    WHERE id = p_job_id RETURNING * INTO job;
  RETURN NEXT;
END $$;

-- Stores an event for each of the p_count newest entries of the log, which are of one subscription, in their order.
CREATE OR REPLACE FUNCTION subscription_upload_events(p_job jobs, p_count integer) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM webhook_enqueue(p_job.organization_id, webhook_upload_type(newest.event), newest.event, decided_at)
    FROM (SELECT * FROM log_entries WHERE organization_id = p_job.organization_id ORDER BY sequence DESC LIMIT p_count) newest
      JOIN job_videos video USING (job_id, position)
    ORDER BY newest.sequence;
END $$;
DROP FUNCTION IF EXISTS subscription_upload_events(jobs, json[]);

-- Removes the results of a subscription that have expired, some rows at a time. Its uploads stay known.
CREATE OR REPLACE FUNCTION subscription_remove_batch(p_job jobs, p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_until timestamptz := clock_now() - make_interval(secs => p_job.results_seconds);
  v_removed record;
BEGIN
  WITH oldest AS (
    SELECT position, sequence, mark, octet_length(entry) AS bytes, decided_at FROM job_videos
      WHERE job_id = p_job.id AND sequence > p_job.expired_sequence ORDER BY sequence LIMIT p_rows_max
  ), removed AS (
    UPDATE job_videos video SET state = 'seen', upload = '{}', cached = NULL, sequence = NULL, mark = NULL, error_code = NULL,
        entry = NULL, entry_bytes = NULL, entry_crc = NULL
      FROM oldest WHERE video.job_id = p_job.id AND video.position = oldest.position AND oldest.decided_at <= v_until
      RETURNING oldest.sequence, oldest.mark, oldest.bytes
  )
  SELECT count(*) AS videos, max(sequence) AS sequence, (array_agg(mark ORDER BY sequence DESC))[1] AS mark,
         coalesce(sum(bytes), 0) AS bytes INTO v_removed FROM removed;
  UPDATE jobs SET stored_bytes = stored_bytes - v_removed.bytes,
      expired_sequence = coalesce(v_removed.sequence, expired_sequence), expired_mark = coalesce(v_removed.mark, expired_mark),
      remove_at = (SELECT decided_at + make_interval(secs => results_seconds) FROM job_videos
                     WHERE job_id = p_job.id AND sequence > p_job.expired_sequence ORDER BY sequence LIMIT 1)
    WHERE id = p_job.id;
  RETURN greatest(v_removed.videos, 1);
END $$;

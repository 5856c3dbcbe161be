-- Subscriptions are jobs with check_seconds, which never finish by themselves: 'running', 'paused', or 'canceled' when their
-- organization was deleted. Their slices are those of videos; what they follow is a source (sources.sql).

-- When a subscription has its next slice: at p_videos_at, or when a video is tried again later; null while none is pending and
-- while it is paused, but for the quota: what costs nothing goes on.
CREATE OR REPLACE FUNCTION subscription_next_run(p_job jobs, p_videos_at timestamptz)
RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_job.state <> 'running' AND p_job.reason IS DISTINCT FROM 'plan_limit_exceeded' THEN
    RETURN NULL;
  ELSIF EXISTS (SELECT FROM job_videos WHERE job_id = p_job.id AND state = 'pending' AND coalesce(retry_at, p_videos_at) <= p_videos_at) THEN
    RETURN p_videos_at;
  END IF;
  RETURN (SELECT min(retry_at) FROM job_videos WHERE job_id = p_job.id AND state = 'pending');
END $$;

DROP FUNCTION IF EXISTS subscription_commit_check(text, uuid, json);
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
  -- Before the queue of the organization, which the source's turn of a subscription locks after it.
  PERFORM FROM sources WHERE id = job.source_id FOR UPDATE;
  old_state := job.state;
  old_job := job;
  IF p_check_seconds <> job.check_seconds THEN
    job.check_seconds := p_check_seconds;
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
    IF job.check_requested_at IS NULL OR is_due(job.check_requested_at, make_interval(secs => p_seconds_min)) THEN
      job.check_requested_at := greatest(v_now, CASE WHEN job.check_requested_at <= v_now
                                                     THEN job.check_requested_at + make_interval(secs => p_seconds_min) END);
    END IF;
  END IF;
  IF job IS DISTINCT FROM old_job THEN
    job.key_id := coalesce(p_key_id, job.key_id);
  END IF;
  UPDATE jobs SET key_id = job.key_id, request = job.request, created_request = job.created_request, labels = job.labels,
      check_seconds = job.check_seconds, state = job.state, reason = job.reason,
      setbacks = job.setbacks, check_requested_at = job.check_requested_at,
      -- The next slice of one that goes on looks whether the plan includes it.
      next_run_at = CASE WHEN job.state <> old_state THEN CASE WHEN job.state = 'running' THEN v_now END
                         ELSE subscription_next_run(job, greatest(job.next_run_at, v_now)) END
    WHERE id = p_id RETURNING * INTO job;
  IF job.check_seconds <> old_job.check_seconds OR job.state <> old_state THEN
    PERFORM source_reschedule(job.source_id);
  END IF;
  IF job.state = 'running' AND old_state = 'paused' THEN
    PERFORM source_request(job.source_id, job.check_requested_at);
  END IF;
  RETURN NEXT;
END $$;

-- Makes a check due at once, which reads the list from its first page, after the one that is running; and the pending videos
-- too, for which that is not one of their tries: decided_at keeps the time of the next one. Nothing changes, and
-- retry_after_seconds is not null, within p_seconds_min of the last request; nor while the caller has paused the subscription.
CREATE OR REPLACE FUNCTION subscription_check(p_organization_id text, p_id text, p_seconds_min double precision)
RETURNS TABLE (retry_after_seconds integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_pause interval := make_interval(secs => p_seconds_min);
BEGIN
  SELECT * INTO job FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND check_seconds IS NOT NULL
    AND finished_at IS NULL AND deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF job.check_requested_at > v_now - v_pause AND job.check_requested_at <= v_now + v_pause THEN
    retry_after_seconds := greatest(1, ceil(p_seconds_min - extract(epoch FROM v_now - job.check_requested_at)));
  ELSIF job.reason IS DISTINCT FROM 'paused_by_caller' THEN
    PERFORM FROM sources WHERE id = job.source_id FOR UPDATE;
    UPDATE job_videos SET retry_at = v_now, decided_at = retry_at, retries = greatest(1, retries - 1)
      WHERE job_id = p_id AND state = 'pending' AND retry_at > v_now;
    UPDATE jobs SET check_requested_at = v_now, next_run_at = subscription_next_run(job, v_now)
      WHERE id = p_id RETURNING * INTO job;
    PERFORM source_request(job.source_id, v_now);
  END IF;
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

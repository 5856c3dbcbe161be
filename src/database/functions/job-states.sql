-- The states of jobs and subscriptions: what an event makes of one is decided here, and nowhere else. All transitions stand in
-- docs/jobs.md, with which test/jobs/states compares them.

DROP TRIGGER IF EXISTS job_changed ON jobs;
DROP FUNCTION IF EXISTS job_changed();

-- Changes a job, which its caller has locked and stores with job_store, by an event: its state with the reason, its setbacks, and
-- when its next slice is due. p_outcome is what a slice reports, with the seconds that it states, why a sweep ends a pause, or why the
-- source of a subscription cannot be read, null when it can. Stores the event for webhooks.
CREATE OR REPLACE FUNCTION job_transition(
  p_job jobs, p_event text, p_outcome text DEFAULT NULL, p_seconds double precision DEFAULT 0
) RETURNS jobs LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  job jobs := p_job;
  v_now timestamptz := clock_now();
  v_kind text := CASE WHEN job.check_seconds IS NULL THEN 'job' ELSE 'subscription' END;
BEGIN
  CASE p_event
    WHEN 'claim' THEN
      job.started_at := coalesce(job.started_at, v_now);
    WHEN 'page' THEN
      -- It does not know whether there is quota again.
      IF job.finished_at IS NULL AND job.reason IS DISTINCT FROM 'plan_limit_exceeded' THEN
        job.state := 'running';
        job.reason := NULL;
      END IF;
      job.next_run_at := v_now;
    WHEN 'slice' THEN
      job := job_slice_ended(job, p_outcome, p_seconds);
    WHEN 'source' THEN
      job.state := CASE WHEN p_outcome IS NULL THEN 'running' ELSE 'paused' END;
      job.reason := p_outcome;
    WHEN 'resume', 'sweep' THEN
      job.state := CASE WHEN p_outcome = 'organization_deleted' THEN 'canceled' ELSE 'running' END;
      job.reason := NULL;
      job.next_run_at := v_now;
      IF p_event = 'resume' THEN
        job.setbacks := 0;
        job.list_retry_at := NULL;
      END IF;
    WHEN 'pause' THEN
      job.state := 'paused';
      job.reason := 'paused_by_caller';
    WHEN 'cancel', 'delete' THEN
      IF job.finished_at IS NULL THEN
        job.state := 'canceled';
        job.reason := NULL;
      END IF;
      IF p_event = 'delete' THEN
        job.deleted_at := v_now;
        job.idempotency_key := NULL;
      END IF;
  END CASE;
  job := job_settled(job);
  IF job.deleted_at IS NULL AND (job.state, job.reason) IS DISTINCT FROM (p_job.state, p_job.reason)
    AND (job.state = 'paused' OR job.check_seconds IS NULL AND job.finished_at IS NOT NULL) THEN
    PERFORM webhook_enqueue(job.organization_id, v_kind || '.' || job.state, jsonb_build_object(
      v_kind || 'Id', job.id, 'labels', job.labels, 'state', job.state, 'reason', job.reason, 'channelId', job.channel_id,
      'summary', jsonb_build_object(
        'total', job.total, 'succeeded', job.succeeded, 'failed', job.failed, 'cached', job.cached,
        'fetched', job.fetched, 'pending', job.total - job.succeeded - job.failed)));
  END IF;
  RETURN job;
END $$;

-- What a slice makes of its job by its outcome. What was canceled meanwhile stays so, and a subscription that was paused by its caller
-- or its source.
CREATE OR REPLACE FUNCTION job_slice_ended(job jobs, p_outcome text, p_seconds double precision)
RETURNS jobs LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_follows boolean := job.check_seconds IS NOT NULL;
  v_not_found boolean := p_outcome IN ('channel_not_found', 'playlist_not_found');
  v_is_setback boolean := p_outcome IN ('failed', 'blocked');
  -- A pause for a block goes on until the platform has served a slice, and one for the quota until something was reserved.
  v_stays boolean := p_outcome IN ('unserved', 'quota_reserved', 'stopped', 'busy', 'failed')
    AND coalesce(job.reason IN ('upstream_blocked', 'plan_limit_exceeded'), false);
  v_reason text := CASE WHEN p_outcome = 'plan_excludes' THEN 'plan_changed'
                        WHEN v_not_found THEN p_outcome
                        WHEN p_outcome = 'without_quota' THEN 'plan_limit_exceeded'
                        WHEN p_outcome = 'blocked' THEN 'upstream_blocked'
                        WHEN v_stays THEN job.reason END;
  v_due timestamptz;
BEGIN
  IF job.finished_at IS NULL AND NOT (v_follows AND job.state = 'paused' AND job.reason <> 'plan_limit_exceeded') THEN
    job.state := CASE WHEN p_outcome = 'organization_deleted' THEN 'canceled'
                      WHEN v_not_found OR p_outcome = 'without_quota' AND job.request::jsonb ->> 'onQuota' = 'fail' THEN 'failed'
                      -- A block does not pause a subscription.
                      WHEN v_reason IS NULL OR v_follows AND v_reason = 'upstream_blocked' THEN 'running'
                      ELSE 'paused' END;
    job.reason := v_reason;
  END IF;
  -- A pause for the plan lasts until that changes.
  IF p_outcome <> 'plan_excludes' THEN
    v_due := clock_now() + make_interval(secs => CASE
      -- The pause until the platform is tried again doubles with each consecutive setback.
      WHEN v_is_setback THEN least(900, 30 * 2 ^ least(job.setbacks, 10))
      -- Other calls hold the rest of the quota, for as long as they run.
      WHEN p_outcome = 'quota_reserved' THEN 5
      -- What costs nothing is looked for again.
      WHEN p_outcome = 'without_quota' THEN 3600
      ELSE p_seconds END);
  END IF;
  job.setbacks := CASE WHEN v_is_setback THEN job.setbacks + 1
                       WHEN p_outcome IN ('stopped', 'busy') OR v_stays THEN job.setbacks
                       ELSE 0 END;
  job.next_run_at := CASE WHEN v_follows THEN subscription_next_run(job, v_due) ELSE job_next_run(job, v_due) END;
  RETURN job;
END $$;

-- When a job has its next slice, but not before p_due_at: a page of its list while one is due, else videos.
CREATE OR REPLACE FUNCTION job_next_run(p_job jobs, p_due_at timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN CASE WHEN job_slice_kind(p_job, true) = 'listing' THEN p_due_at ELSE job_videos_at(p_job, p_due_at) END;
END $$;

-- When videos of a job are due, but not before p_due_at: none is before the first of them that is tried again later.
CREATE OR REPLACE FUNCTION job_videos_at(p_job jobs, p_due_at timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_longest timestamptz := clock_now() + job_longest(p_job);
BEGIN
  IF EXISTS (SELECT FROM job_videos WHERE job_id = p_job.id AND state = 'pending'
               AND coalesce(retry_at <= p_due_at OR retry_at > v_longest, true)) THEN
    RETURN p_due_at;
  END IF;
  RETURN (SELECT min(retry_at) FROM job_videos WHERE job_id = p_job.id AND state = 'pending');
END $$;

-- What follows from what a job is now: whether an unfinished one is queued, listed, running or complete, and the end of a finished
-- one. It is paused as long as its list is incomplete, also while that is read again. A subscription has neither these states nor
-- their end.
CREATE OR REPLACE FUNCTION job_settled(job jobs) RETURNS jobs LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_goes_on boolean := job.state IN ('queued', 'listing', 'running') AND job.check_seconds IS NULL;
BEGIN
  IF job.state NOT IN ('canceled', 'failed') AND job.listed_at IS NOT NULL AND job.succeeded + job.failed = job.total THEN
    job.state := 'completed';
    job.reason := NULL;
  ELSIF v_goes_on AND job.listed_at IS NULL AND job.list_retry_at IS NOT NULL THEN
    job.state := 'paused';
    job.reason := 'list_incomplete';
    -- From then on the list is what is next, after the pause of its last failure.
    IF NOT is_due(job.list_retry_at, job_longest(job)) THEN
      job.next_run_at := CASE WHEN job.succeeded + job.failed = job.total THEN job.list_retry_at
                              ELSE least(job.next_run_at, job.list_retry_at) END;
    END IF;
  ELSIF v_goes_on THEN
    job.state := CASE WHEN job.started_at IS NULL THEN 'queued' WHEN job.listed_at IS NULL THEN 'listing' ELSE 'running' END;
  END IF;
  IF job.state NOT IN ('completed', 'canceled', 'failed') THEN
    job.finished_at := NULL;
    job.expires_at := NULL;
  ELSE
    job.next_run_at := NULL;
    IF job.finished_at IS NULL THEN
      job.finished_at := clock_now();
      job.expires_at := job.finished_at + make_interval(secs => job.results_seconds);
    END IF;
  END IF;
  RETURN job;
END $$;

-- The longest pause until the next slice, a video or the list of a job: a time beyond it was stored while the clock was ahead.
CREATE OR REPLACE FUNCTION job_longest(p_job jobs) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_job.check_seconds IS NULL THEN interval '6 hours' ELSE interval '7 days' END
$$;

-- Stores a job that was changed. Results are removed when they have expired, and those of a deleted job at once, whatever the
-- clock was.
CREATE OR REPLACE FUNCTION job_store(p_job jobs) RETURNS jobs LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  job jobs;
BEGIN
  UPDATE jobs SET key_id = p_job.key_id, idempotency_key = p_job.idempotency_key, deleted_at = p_job.deleted_at,
      state = p_job.state, reason = p_job.reason, setbacks = p_job.setbacks, next_run_at = p_job.next_run_at,
      claim = p_job.claim, claimed_until = p_job.claimed_until, started_at = p_job.started_at,
      finished_at = p_job.finished_at, expires_at = p_job.expires_at,
      remove_at = CASE WHEN p_job.deleted_at IS NOT NULL THEN 'epoch'
                       WHEN p_job.expires_at IS DISTINCT FROM expires_at THEN p_job.expires_at ELSE p_job.remove_at END,
      channel_id = p_job.channel_id, channel = p_job.channel, playlist = p_job.playlist,
      continuation = p_job.continuation, listed_at = p_job.listed_at, list_retry_at = p_job.list_retry_at,
      list_end = p_job.list_end, list_ended_at = p_job.list_ended_at, list_end_reads = p_job.list_end_reads,
      hidden = p_job.hidden, total = p_job.total, last_position = p_job.last_position,
      succeeded = p_job.succeeded, failed = p_job.failed, cached = p_job.cached, fetched = p_job.fetched,
      stored_bytes = p_job.stored_bytes
    WHERE id = p_job.id RETURNING * INTO job;
  RETURN job;
END $$;

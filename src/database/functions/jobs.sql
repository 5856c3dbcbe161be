-- The functions by which organizations change archive jobs. The tables are the truth and the engine: workers ask them for the
-- next slice, and every change of a job is one statement.

DROP FUNCTION IF EXISTS job_resume(text, text, integer, double precision);
DROP VIEW IF EXISTS job_counts;

-- What follows from the change of a job: whether an unfinished one is queued, listed, running or complete, the end of a
-- finished one, and the event for its webhooks. The functions set the state of a job that goes on to 'running'; it is paused
-- as long as its list is incomplete, also while that is read again. A subscription has neither these states nor their end. All
-- transitions stand in docs/jobs.md, with which test/jobs/states compares them.
CREATE OR REPLACE FUNCTION job_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_kind text := CASE WHEN NEW.check_seconds IS NULL THEN 'job' ELSE 'subscription' END;
BEGIN
  IF NEW.state NOT IN ('canceled', 'failed') AND NEW.listed_at IS NOT NULL AND NEW.succeeded + NEW.failed = NEW.total THEN
    NEW.state := 'completed';
    NEW.reason := NULL;
  ELSIF NEW.state IN ('queued', 'listing', 'running') AND NEW.listed_at IS NULL AND NEW.list_retry_at IS NOT NULL THEN
    NEW.state := 'paused';
    NEW.reason := 'list_incomplete';
    -- From then on the list is what is next, after the pause of its last failure.
    IF NEW.list_retry_at > clock_now() THEN
      NEW.next_run_at := CASE WHEN NEW.succeeded + NEW.failed = NEW.total THEN NEW.list_retry_at
                              ELSE least(NEW.next_run_at, NEW.list_retry_at) END;
    END IF;
  ELSIF NEW.state IN ('queued', 'listing', 'running') AND NEW.check_seconds IS NULL THEN
    NEW.state := CASE WHEN NEW.started_at IS NULL THEN 'queued' WHEN NEW.listed_at IS NULL THEN 'listing' ELSE 'running' END;
  END IF;
  IF NEW.state NOT IN ('completed', 'canceled', 'failed') THEN
    NEW.finished_at := NULL;
    NEW.expires_at := NULL;
  ELSE
    NEW.next_run_at := NULL;
    IF OLD.finished_at IS NULL THEN
      NEW.finished_at := clock_now();
      NEW.expires_at := NEW.finished_at + make_interval(secs => NEW.results_seconds);
    END IF;
  END IF;
  IF (NEW.deleted_at, NEW.expires_at) IS DISTINCT FROM (OLD.deleted_at, OLD.expires_at) THEN
    NEW.remove_at := coalesce(NEW.deleted_at, NEW.expires_at);
  END IF;
  IF NEW.deleted_at IS NULL AND (NEW.state, NEW.reason) IS DISTINCT FROM (OLD.state, OLD.reason)
    AND (NEW.state = 'paused' OR NEW.check_seconds IS NULL AND NEW.state IN ('completed', 'failed', 'canceled')) THEN
    PERFORM webhook_enqueue(NEW.organization_id, v_kind || '.' || NEW.state, jsonb_build_object(
      v_kind || 'Id', NEW.id, 'labels', NEW.labels, 'state', NEW.state, 'reason', NEW.reason, 'channelId', NEW.channel_id,
      'summary', jsonb_build_object(
        'total', NEW.total, 'succeeded', NEW.succeeded, 'failed', NEW.failed, 'cached', NEW.cached,
        'fetched', NEW.fetched, 'pending', NEW.total - NEW.succeeded - NEW.failed)));
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER job_changed BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION job_changed();

-- Sets when videos of a job are due: with its next slice, or the first that is tried later.
CREATE OR REPLACE FUNCTION job_videos_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.videos_at := NULL;
  IF NEW.succeeded + NEW.failed < NEW.total AND NEW.next_run_at IS NOT NULL THEN
    -- A new job that has videos has none that was tried.
    NEW.videos_at := CASE WHEN TG_OP = 'INSERT' OR EXISTS (
        SELECT FROM job_videos WHERE job_id = NEW.id AND state = 'pending' AND coalesce(retry_at <= NEW.next_run_at, true))
      THEN NEW.next_run_at
      ELSE (SELECT min(retry_at) FROM job_videos WHERE job_id = NEW.id AND state = 'pending') END;
  END IF;
  RETURN NEW;
END $$;
-- After job_changed, which can change next_run_at: triggers run in the order of their names.
CREATE OR REPLACE TRIGGER job_videos_due_first BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION job_videos_due();
CREATE OR REPLACE TRIGGER job_videos_due BEFORE UPDATE ON jobs FOR EACH ROW
  WHEN (NEW.next_run_at IS DISTINCT FROM OLD.next_run_at OR NEW.claim IS NULL AND OLD.claim IS NOT NULL)
  EXECUTE FUNCTION job_videos_due();

-- The turn of an organization when a slice of it is due at a time.
CREATE OR REPLACE FUNCTION job_turn(p_turn_at timestamptz, p_last_turn_at timestamptz, p_due_at timestamptz)
RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_due_at IS NULL OR p_turn_at <= p_due_at THEN p_turn_at
              WHEN p_due_at > clock_now() THEN p_due_at ELSE least(p_last_turn_at, p_due_at) END
$$;

-- Puts the organization of a job that is due earlier than before in its place: an organization that has waited for a job has
-- waited for its turn too. The next slice of a job that runs is never earlier, so slices do not wait for this row.
CREATE OR REPLACE FUNCTION job_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO job_queues AS queue (organization_id, turn_at, videos_turn_at)
    VALUES (NEW.organization_id, 'epoch', CASE WHEN NEW.videos_at IS NOT NULL THEN timestamptz 'epoch' END)
    ON CONFLICT (organization_id) DO UPDATE SET
        turn_at = job_turn(queue.turn_at, queue.last_turn_at, NEW.next_run_at),
        videos_turn_at = job_turn(queue.videos_turn_at, queue.last_turn_at, NEW.videos_at)
      WHERE coalesce(queue.turn_at, 'infinity') > NEW.next_run_at OR coalesce(queue.videos_turn_at, 'infinity') > NEW.videos_at;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_due_first AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.next_run_at IS NOT NULL)
  EXECUTE FUNCTION job_due();
CREATE OR REPLACE TRIGGER job_due AFTER UPDATE ON jobs FOR EACH ROW
  WHEN (NEW.next_run_at < coalesce(OLD.next_run_at, 'infinity') OR NEW.videos_at < coalesce(OLD.videos_at, 'infinity'))
  EXECUTE FUNCTION job_due();

-- The next slice of each job of an organization that is deleted cancels the job. A subscription has one without a pending video.
CREATE OR REPLACE FUNCTION job_organization_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE jobs SET next_run_at = clock_now()
    WHERE organization_id = NEW.id AND finished_at IS NULL AND deleted_at IS NULL
      AND (next_run_at > clock_now() OR next_run_at IS NULL AND source_id IS NOT NULL AND state = 'running');
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_organization_deleted AFTER UPDATE ON organizations FOR EACH ROW
  WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION job_organization_deleted();

-- Why an organization cannot have another unfinished job, or another subscription; null when it can. Its lock must be held.
-- Results that have expired or were deleted do not count, although they are removed a little later. Those of jobs and of
-- subscriptions count together.
CREATE OR REPLACE FUNCTION job_refusal(
  p_organization_id text, p_follows boolean, p_unfinished_max integer, p_stored_max integer, p_bytes_max double precision
) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN count(*) FILTER (WHERE finished_at IS NULL AND (check_seconds IS NOT NULL) = p_follows)
                     >= p_unfinished_max THEN 'too_many'
              WHEN count(*) FILTER (WHERE check_seconds IS NULL) >= p_stored_max THEN 'too_many_stored'
              WHEN sum(stored_bytes) >= p_bytes_max THEN 'too_much_stored' END
    FROM jobs WHERE organization_id = p_organization_id AND deleted_at IS NULL
      AND (expires_at IS NULL OR expires_at > clock_now())
$$;

-- Creates a job or a subscription, of which p_job has the columns, or finds the one with the same idempotency key, which can be
-- one of several, and of which the caller compares the request. A job of videos, whose IDs p_job has too, has its list at once. p_unfinished_max is that of jobs or that of subscriptions. Locks the
-- organization before the job, as job_resume and job_commit_slice do. No row for an organization that was deleted.
CREATE OR REPLACE FUNCTION job_create(
  p_job json, p_unfinished_max integer, p_stored_max integer, p_bytes_max double precision
) RETURNS TABLE (outcome text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_new jobs := json_populate_record(NULL::jobs, p_job);
  v_organization organizations := organization_lock(v_new.organization_id);
  -- The cursor of a list has the milliseconds.
  v_now timestamptz := date_trunc('milliseconds', clock_now());
  v_videos json := coalesce(p_job -> 'videos', '[]');
  v_count integer;
  v_follows boolean := v_new.check_seconds IS NOT NULL;
BEGIN
  IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
    RETURN;
  END IF;
  SELECT * INTO job FROM jobs WHERE organization_id = v_new.organization_id
    AND idempotency_key = v_new.idempotency_key;
  IF FOUND THEN
    outcome := 'known';
  ELSE
    outcome := coalesce(
      job_refusal(v_new.organization_id, v_follows, p_unfinished_max, p_stored_max, p_bytes_max), 'created');
  END IF;
  IF outcome = 'created' THEN
    v_count := least(v_new.video_limit, json_array_length(v_videos));
    INSERT INTO jobs (id, organization_id, key_id, idempotency_key, request, video_limit, results_seconds, created_at,
                      next_run_at, listed_at, total, last_position, check_seconds, state, labels, channel_id, channel, source_id, place)
      VALUES (v_new.id, v_new.organization_id, v_new.key_id, v_new.idempotency_key, v_new.request, v_new.video_limit,
              v_new.results_seconds, v_now, CASE WHEN NOT v_follows THEN v_now END, CASE WHEN v_count > 0 THEN v_now END,
              v_count, v_count, v_new.check_seconds, CASE WHEN v_follows THEN 'running' ELSE 'queued' END,
              coalesce(v_new.labels, '{}'), v_new.channel_id, v_new.channel, v_new.source_id, CASE WHEN v_follows THEN -1 END)
      RETURNING * INTO job;
    IF v_follows THEN
      PERFORM source_follow(job);
    END IF;
    -- Nothing is listed about them.
    INSERT INTO job_videos (job_id, position, video_id, upload)
      SELECT job.id, place, video_id, '{}'
        FROM json_array_elements_text(v_videos) WITH ORDINALITY AS given (video_id, place) WHERE place <= v_count;
  END IF;
  RETURN NEXT;
END $$;

-- Cancels an unfinished job, of any organization when it is null. A running slice keeps its claim, so that what it fetches
-- is stored and charged.
CREATE OR REPLACE FUNCTION job_cancel(p_organization_id text, p_id text)
RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  SELECT * INTO job FROM jobs
    WHERE id = p_id AND organization_id = coalesce(p_organization_id, organization_id) AND deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := job.state;
  IF job.finished_at IS NULL THEN
    UPDATE jobs SET state = 'canceled', reason = NULL WHERE id = p_id RETURNING * INTO job;
  END IF;
  RETURN NEXT;
END $$;

-- Continues a paused, canceled or failed job, unless there is an outcome: why it cannot. From then on it is charged to p_key_id,
-- whose limits it has, and to the same key as before when that is null.
CREATE OR REPLACE FUNCTION job_resume(
  p_organization_id text, p_id text, p_unfinished_max integer, p_bytes_max double precision, p_key_id text
) RETURNS TABLE (outcome text, old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM organization_lock(p_organization_id);
  SELECT * INTO job FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  old_state := job.state;
  IF job.state = 'completed' THEN
    outcome := 'finished';
  ELSIF job.expires_at <= clock_now() THEN
    outcome := 'expired';
  ELSIF job.finished_at IS NOT NULL THEN
    outcome := job_refusal(p_organization_id, false, p_unfinished_max, NULL, p_bytes_max);
  END IF;
  IF outcome IS NULL AND job.state IN ('paused', 'canceled', 'failed') THEN
    UPDATE jobs SET state = 'running', reason = NULL, setbacks = 0, list_retry_at = NULL, next_run_at = clock_now(),
        key_id = coalesce(p_key_id, key_id)
      WHERE id = p_id RETURNING * INTO job;
  END IF;
  RETURN NEXT;
END $$;

-- The results of jobs are numbered in the order in which they became final. Those of subscriptions are numbered in the log of their
-- organization too. A cursor is such a number with the mark of its row.

CREATE OR REPLACE FUNCTION new_mark() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 8), '+/', '-_')
$$;

-- The cursor of a result of a job, after which the next one follows; 0 before the first one. What expired before there were marks
-- has none.
CREATE OR REPLACE FUNCTION result_cursor(p_job jobs, p_sequence integer) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT concat_ws('.', p_sequence, CASE WHEN p_sequence = p_job.expired_sequence THEN p_job.expired_mark
    ELSE (SELECT mark FROM job_videos WHERE job_id = p_job.id AND sequence = p_sequence) END)
$$;

-- The path that returns one result of a subscription.
CREATE OR REPLACE FUNCTION result_address(p_job jobs, p_sequence integer) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT format('/subscriptions/%s/results?after=%s&limit=1', p_job.id, result_cursor(p_job, p_sequence - 1))
$$;

-- Adds the newest results of a subscription, whose events are given in their order, to the log of its organization, which must be
-- locked. The data of an event is stored as it is sent, because a replay sends the same.
CREATE OR REPLACE FUNCTION log_append(p_job jobs, p_events json[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO organization_logs (organization_id) VALUES (p_job.organization_id) ON CONFLICT DO NOTHING;
  WITH added AS (
    INSERT INTO log_entries (organization_id, sequence, mark, job_id, position, expires_at, event)
      SELECT p_job.organization_id, log.last_sequence + place, video.mark, p_job.id, video.position,
             video.decided_at + make_interval(secs => p_job.results_seconds),
             jsonb_build_object('subscriptionId', p_job.id, 'labels', p_job.labels) || decided.event::jsonb
               || jsonb_build_object('results', result_address(p_job, video.sequence))
        FROM organization_logs log, unnest(p_events) WITH ORDINALITY AS decided (event, place), job_videos video
        WHERE log.organization_id = p_job.organization_id AND video.job_id = p_job.id
          AND video.sequence = p_job.succeeded + p_job.failed + place
      RETURNING expires_at
  )
  UPDATE organization_logs SET last_sequence = last_sequence + added.count, remove_at = coalesce(remove_at, added.expires_at)
    FROM (SELECT count(*), min(expires_at) AS expires_at FROM added) added WHERE organization_id = p_job.organization_id;
END $$;

-- The last number of a log, and the last one of its beginning that has expired, whether its row was removed or not, with its mark.
CREATE OR REPLACE FUNCTION log_bounds(p_organization_id text)
RETURNS TABLE (last_sequence bigint, expired_sequence bigint, expired_mark text) LANGUAGE sql VOLATILE AS $$
  SELECT log.last_sequence, coalesce(expired.sequence, log.expired_sequence),
         CASE WHEN expired.sequence IS NULL THEN log.expired_mark ELSE expired.mark END
    FROM organization_logs log LEFT JOIN LATERAL (
      SELECT sequence, mark FROM log_entries WHERE organization_id = log.organization_id AND sequence < coalesce(
          (SELECT sequence FROM log_entries WHERE organization_id = log.organization_id AND expires_at > (SELECT clock_now())
             ORDER BY sequence LIMIT 1), log.last_sequence + 1)
        ORDER BY sequence DESC LIMIT 1) expired ON true
    WHERE log.organization_id = p_organization_id
$$;

-- Removes the expired rows of the beginning of a log, some at a time. Returns the number of removed rows, at least 1 while there is
-- such a log.
CREATE OR REPLACE FUNCTION log_remove_batch(p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization_id text;
  v_bounds record;
  v_removed integer;
BEGIN
  SELECT organization_id INTO v_organization_id FROM organization_logs WHERE remove_at <= clock_now()
    ORDER BY remove_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  SELECT * INTO v_bounds FROM log_bounds(v_organization_id);
  WITH removed AS (
    DELETE FROM log_entries WHERE organization_id = v_organization_id AND sequence = ANY (ARRAY(
      SELECT sequence FROM log_entries WHERE organization_id = v_organization_id AND sequence <= v_bounds.expired_sequence
        ORDER BY sequence LIMIT p_rows_max))
      RETURNING sequence, mark
  ), latest AS (
    UPDATE organization_logs SET expired_sequence = removed.sequence, expired_mark = removed.mark
      FROM (SELECT sequence, mark FROM removed ORDER BY sequence DESC LIMIT 1) removed WHERE organization_id = v_organization_id
  )
  SELECT count(*) INTO v_removed FROM removed;
  UPDATE organization_logs SET remove_at = (
      SELECT expires_at FROM log_entries WHERE organization_id = v_organization_id ORDER BY sequence LIMIT 1)
    WHERE organization_id = v_organization_id;
  RETURN greatest(v_removed, 1);
END $$;

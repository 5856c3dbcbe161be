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
  UPDATE organization_logs SET last_sequence = last_sequence + added.count, remove_at = least(remove_at, added.expires_at)
    FROM (SELECT count(*), min(expires_at) AS expires_at FROM added) added WHERE organization_id = p_job.organization_id;
END $$;

-- Has entries of a subscription stay in the log for as long as the library has their texts. An archive job has none.
CREATE OR REPLACE FUNCTION log_keep(p_job jobs, p_videos text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
  UPDATE log_entries log SET is_kept = true
    WHERE p_job.check_seconds IS NOT NULL AND organization_id = p_job.organization_id AND event ->> 'videoId' = ANY (p_videos)
      AND job_id = p_job.id AND NOT is_kept AND EXISTS (
        SELECT FROM library_texts
          WHERE organization_id = p_job.organization_id AND video_id = log.event ->> 'videoId' AND deleted_at IS NULL)
$$;

-- Has entries that were kept expire, of all subscriptions when p_job_id is null.
CREATE OR REPLACE FUNCTION log_release(p_organization_id text, p_job_id text, p_videos text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
  WITH released AS (
    UPDATE log_entries SET is_kept = false
      WHERE organization_id = p_organization_id AND event ->> 'videoId' = ANY (p_videos) AND job_id = coalesce(p_job_id, job_id) AND is_kept
      RETURNING expires_at
  )
  UPDATE organization_logs SET remove_at = least(remove_at, released.expires_at)
    FROM (SELECT min(expires_at) AS expires_at FROM released) released WHERE organization_id = p_organization_id
$$;

-- Removes expired entries of a log with their results, some at a time. The log and the subscriptions know the last one that was removed.
-- What another transaction holds has a later turn: waiting for it could be waiting for each other. Returns the number of removed entries.
CREATE OR REPLACE FUNCTION log_remove_batch(p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization_id text;
  v_expired bigint[];
  v_jobs text[];
  v_removed record;
  v_count integer := 0;
BEGIN
  FOR v_organization_id IN
    SELECT organization_id FROM organization_logs WHERE remove_at <= clock_now() ORDER BY remove_at LIMIT 100
  LOOP
    v_expired := ARRAY(
      SELECT sequence FROM log_entries WHERE organization_id = v_organization_id AND NOT is_kept AND expires_at <= clock_now()
        ORDER BY expires_at, sequence LIMIT p_rows_max);
    v_jobs := ARRAY(
      SELECT id FROM jobs WHERE id IN (
        SELECT job_id FROM log_entries WHERE organization_id = v_organization_id AND sequence = ANY (v_expired)) FOR UPDATE SKIP LOCKED);
    -- After the jobs, as a slice locks them.
    PERFORM FROM organization_logs WHERE organization_id = v_organization_id FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    WITH removed AS (
      DELETE FROM log_entries log WHERE organization_id = v_organization_id AND sequence = ANY (v_expired) AND NOT is_kept
        AND (job_id = ANY (v_jobs) OR NOT EXISTS (SELECT FROM jobs WHERE id = log.job_id))
        RETURNING sequence, mark, job_id, position
    ), results AS (
      DELETE FROM job_videos video USING removed WHERE video.job_id = removed.job_id AND video.position = removed.position
        RETURNING video.job_id, video.sequence, video.mark, octet_length(video.entry) AS bytes
    ), changed AS (
      UPDATE jobs SET stored_bytes = stored_bytes - of_job.bytes, expired_sequence = greatest(expired_sequence, of_job.sequence),
          expired_mark = CASE WHEN of_job.sequence > expired_sequence THEN of_job.mark ELSE expired_mark END
        FROM (SELECT job_id, sum(bytes) AS bytes, max(sequence) AS sequence, (array_agg(mark ORDER BY sequence DESC))[1] AS mark
                FROM results GROUP BY job_id) of_job
        WHERE id = of_job.job_id
    )
    SELECT count(*) AS entries, max(sequence) AS sequence, (array_agg(mark ORDER BY sequence DESC))[1] AS mark
      INTO v_removed FROM removed;
    UPDATE organization_logs SET expired_sequence = greatest(expired_sequence, v_removed.sequence),
        expired_mark = CASE WHEN v_removed.sequence > expired_sequence THEN v_removed.mark ELSE expired_mark END,
        remove_at = (SELECT min(expires_at) FROM log_entries WHERE organization_id = v_organization_id AND NOT is_kept)
      WHERE organization_id = v_organization_id;
    v_count := v_removed.entries;
    EXIT WHEN v_count > 0;
  END LOOP;
  RETURN v_count;
END $$;

-- Sources: followed channels and playlists, each of which is read once for all its subscriptions. A check goes along the list by
-- pages and adds to source_uploads what is new. What a subscription has not taken from there becomes its pending videos, in turns
-- of some subscriptions. Locks: who holds a source takes jobs only that nobody else holds.

-- The time of the next check after a time. The checks of all sources are spread over the interval.
DROP FUNCTION IF EXISTS subscription_tick(text, integer, timestamptz);
CREATE OR REPLACE FUNCTION source_tick(p_id text, p_seconds integer, p_after timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT to_timestamp((floor((extract(epoch FROM p_after) - shift) / p_seconds) + 1) * p_seconds + shift)
    FROM (SELECT ('x' || left(md5(p_id), 8))::bit(32)::bigint % p_seconds AS shift) spread
$$;

-- The shortest interval that a subscription wants; null when none wants checks.
CREATE OR REPLACE FUNCTION source_interval(p_id text) RETURNS integer LANGUAGE sql VOLATILE AS $$
  SELECT min(check_seconds) FROM jobs WHERE source_id = p_id AND finished_at IS NULL AND deleted_at IS NULL
    AND (state = 'running' OR reason NOT IN ('paused_by_caller', 'plan_changed'))
$$;

-- Whether a subscription to some kinds, empty for all, wants an upload. A stream or a premiere becomes a video, and one whose kind
-- is not known can be a video or a Short.
CREATE OR REPLACE FUNCTION source_is_wanted(p_kind text, p_kinds text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT cardinality(p_kinds) = 0 OR coalesce(p_kind = ANY (p_kinds), p_kinds && '{video,short}')
    OR p_kind IN ('live', 'upcoming') AND 'video' = ANY (p_kinds)
$$;

CREATE OR REPLACE FUNCTION source_kinds(p_request text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY(SELECT json_array_elements_text(p_request::json -> 'kinds'))
$$;

-- Makes a check due that begins later than now. One that runs goes on, and is followed by another.
CREATE OR REPLACE FUNCTION source_request(p_id text, p_at timestamptz) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_source sources;
BEGIN
  SELECT * INTO v_source FROM sources WHERE id = p_id FOR UPDATE;
  IF v_source.next_check_at <= v_now AND (v_source.continuation IS NOT NULL OR v_source.claimed_until > v_now) THEN
    UPDATE sources SET check_requested_at = p_at WHERE id = p_id;
  ELSE
    UPDATE sources SET check_requested_at = p_at, next_check_at = least(next_check_at, p_at), scheduled_at = v_now,
        continuation = NULL, fingerprint = CASE WHEN continuation IS NULL THEN fingerprint END
      WHERE id = p_id;
  END IF;
END $$;

-- Lets a subscription that has no start yet follow its source. A walk that began before does not read for it.
CREATE OR REPLACE FUNCTION source_follow(p_job jobs) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO sources (id, kind, created_at, next_check_at, scheduled_at)
    VALUES (p_job.source_id, CASE WHEN p_job.request::json ->> 'playlist' IS NULL THEN 'channel' ELSE 'playlist' END,
            p_job.created_at, p_job.created_at, clock_now())
    ON CONFLICT (id) DO UPDATE SET id = excluded.id;
  UPDATE jobs SET started_at = clock_now() WHERE id = p_job.id;
  PERFORM source_request(p_job.source_id, clock_now());
END $$;

-- Moves the next check of a source when the interval has changed. Those that are due, requested, or failed before stay as they are.
CREATE OR REPLACE FUNCTION source_reschedule(p_id text) RETURNS void LANGUAGE sql VOLATILE AS $$
  UPDATE sources SET next_check_at = source_tick(id, source_interval(id), clock_now()), scheduled_at = clock_now()
    WHERE id = p_id AND next_check_at > clock_now() AND setbacks = 0 AND source_interval(id) IS NOT NULL
      AND (check_requested_at > clock_now() AND check_requested_at <= clock_now() + interval '1 minute') IS NOT TRUE
$$;

-- Removes a source that nobody follows any more.
CREATE OR REPLACE FUNCTION source_release(p_id text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM sources WHERE id = p_id FOR UPDATE;
  -- A later statement sees the subscription of a transaction that held the row.
  DELETE FROM sources WHERE id = p_id
    AND NOT EXISTS (SELECT FROM jobs WHERE source_id = p_id AND state IN ('running', 'paused') AND deleted_at IS NULL);
END $$;

-- What the callers of a subscription read of its source. A check has not ended while subscriptions have yet to take what it found.
CREATE OR REPLACE FUNCTION source_facts(p_id text) RETURNS json LANGUAGE sql VOLATILE AS $$
  SELECT json_build_object('next_check_at', CASE WHEN spread_at IS NULL THEN next_check_at ELSE least(next_check_at, checked_at) END, 'checked_at', checked_at, 'reason', reason) FROM sources WHERE id = p_id
$$;

-- Whether a walk that began at a time serves the start of a subscription that follows since another one. A time that is later
-- than now, by a wrong clock, is not believed.
CREATE OR REPLACE FUNCTION source_waits(p_started_at timestamptz, p_began_at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_began_at IS NOT NULL AND (p_started_at <= p_began_at OR p_started_at > clock_now())
$$;

-- When the check is due that was requested since the last one began; null when none was.
CREATE OR REPLACE FUNCTION source_requested(p_source sources) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_source.check_requested_at > p_source.began_at AND p_source.check_requested_at <= clock_now() + interval '1 minute'
              THEN greatest(p_source.check_requested_at, clock_now()) END
$$;

-- The starts that a walk has to read for: each with how many of the uploads that it wants were listed.
CREATE OR REPLACE FUNCTION source_starts(p_source sources) RETURNS json LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(json_agg(json_build_object('start', start::json, 'kinds', to_json(kinds), 'listed', (
           SELECT count(*) FROM source_uploads WHERE source_id = p_source.id AND rank IS NOT NULL AND source_is_wanted(kind, kinds)))), '[]')
    FROM (SELECT DISTINCT (request::json -> 'start')::text AS start, source_kinds(request) AS kinds FROM jobs
            WHERE source_id = p_source.id AND state IN ('running', 'paused') AND place = -1 AND deleted_at IS NULL
              AND source_waits(started_at, p_source.began_at)) waiting
    WHERE start <> '"now"' AND NOT EXISTS (
      SELECT FROM source_uploads WHERE source_id = p_source.id AND rank IS NOT NULL AND start = to_json(video_id)::text)
$$;

-- Claims what is next at a source: a turn of its subscriptions, or with p_lists a page of a check; for an organization, or null
-- for all. A claim that has expired is that of a process that was killed, which counts as a setback.
CREATE OR REPLACE FUNCTION source_claim(p_claim uuid, p_lease_seconds double precision, p_organization text, p_lists boolean)
RETURNS TABLE (is_check boolean, source sources) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_lease interval := make_interval(secs => p_lease_seconds);
BEGIN
  LOOP
    SELECT * INTO source FROM sources due
      WHERE spread_at IS NOT NULL AND is_due(spread_at, '1 minute') AND (claim IS NULL OR is_due(claimed_until, v_lease)) AND source_is_of(id, p_organization)
      ORDER BY spread_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    is_check := NOT FOUND;
    IF is_check AND p_lists THEN
      SELECT * INTO source FROM sources due
        WHERE next_check_at <= v_now AND source_is_free(due, v_lease) AND source_is_of(id, p_organization)
        ORDER BY next_check_at LIMIT 1 FOR UPDATE SKIP LOCKED;
      IF NOT FOUND THEN
        SELECT * INTO source FROM sources due
          WHERE scheduled_at > v_now + interval '1 minute' AND next_check_at IS NOT NULL AND source_is_free(due, v_lease) AND source_is_of(id, p_organization)
          ORDER BY scheduled_at DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
      END IF;
    END IF;
    IF source.id IS NULL THEN
      RETURN;
    END IF;
    EXIT WHEN NOT is_check OR source_interval(source.id) IS NOT NULL;
    -- Until a subscription wants checks again.
    UPDATE sources SET next_check_at = NULL, continuation = NULL, fingerprint = NULL, claim = NULL, setbacks = 0, unread_since = NULL
      WHERE id = source.id;
  END LOOP;
  IF is_check AND source.continuation IS NULL THEN
    -- A walk that begins anew decides anew.
    DELETE FROM source_uploads WHERE source_id = source.id AND position > source.seen_position AND state = 'undecided';
    UPDATE source_uploads SET rank = NULL WHERE source_id = source.id AND rank IS NOT NULL;
    source.began_at := v_now;
    source.for_starts := false;
  END IF;
  IF is_check AND source.next_check_at <= v_now - interval '1 day' THEN
    -- Nobody has tried meanwhile.
    source.unread_since := NULL;
    source.setbacks := 0;
  END IF;
  UPDATE sources SET claim = p_claim, claimed_until = v_now + v_lease, setbacks = source.setbacks + (claim IS NOT NULL)::integer,
      began_at = source.began_at, for_starts = source.for_starts, unread_since = source.unread_since
    WHERE id = source.id RETURNING * INTO source;
  RETURN NEXT;
END $$;

-- A check that ends its process again and again would end every process: it is repeated after growing pauses.
CREATE OR REPLACE FUNCTION source_is_free(p_source sources, p_lease interval) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_source.claim IS NULL OR is_due(p_source.claimed_until + CASE WHEN p_source.setbacks = 0 THEN interval '0' ELSE
    make_interval(secs => least(900, 30 * 2 ^ least(p_source.setbacks - 1, 10))) END, p_lease + interval '15 minutes')
$$;

CREATE OR REPLACE FUNCTION source_is_of(p_id text, p_organization text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_organization IS NULL OR EXISTS (
    SELECT FROM jobs WHERE source_id = p_id AND state IN ('running', 'paused') AND organization_id = p_organization)
$$;

-- Stores a page of a check: what it lists anew, and what it decides about earlier pages. When the walk has ended, subscriptions take
-- what it has found. A walk of several pages is repeated at once until it finds nothing new, because an upload that is deleted
-- between the readings of two pages moves another one past both. More than 20 uploads that are older than the walk before are
-- forgotten, until another read finds the same ones. False without the claim.
CREATE OR REPLACE FUNCTION source_commit_page(p_id text, p_claim uuid, p_page json) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_page record;
  v_source sources;
  v_now timestamptz;
  v_rank integer;
  v_old record;
BEGIN
  SELECT * INTO v_page FROM json_to_record(p_page) AS page (
    header text, uploads json, decided text, "end" text, continuation text, sees_all boolean, for_starts boolean, fingerprint text,
    found integer, hidden integer);
  SELECT * INTO v_source FROM sources WHERE id = p_id AND claim = p_claim FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  v_now := clock_now();
  IF v_source.continuation IS NULL THEN
    v_source.found := 0;
    v_source.fingerprint := v_page.fingerprint;
  ELSIF v_page.decided <> 'undecided' THEN
    UPDATE source_uploads SET state = v_page.decided
      WHERE source_id = p_id AND position > v_source.seen_position AND state = 'undecided';
  END IF;
  SELECT coalesce(max(rank), 0) INTO v_rank FROM source_uploads WHERE source_id = p_id AND rank IS NOT NULL;
  INSERT INTO source_uploads AS known (source_id, video_id, position, first_position, state, is_old, found_at, upload, kind, published_at, rank)
    SELECT p_id, item ->> 'video_id', v_source.last_position + place, v_source.last_position + place, coalesce(item ->> 'state', 'seen'),
           coalesce((item ->> 'is_old')::boolean, false), v_now, item ->> 'upload', item ->> 'kind', (item ->> 'published_at')::timestamptz,
           CASE WHEN (item ->> 'ranked')::boolean THEN v_rank + place END
      FROM json_array_elements(v_page.uploads) WITH ORDINALITY AS listed (item, place)
    ON CONFLICT (source_id, video_id) DO UPDATE SET upload = excluded.upload, kind = excluded.kind, published_at = excluded.published_at,
      -- It was not listed before the walk that reads it for a start.
      rank = coalesce(known.rank, excluded.rank),
      position = CASE WHEN excluded.state = 'new' THEN excluded.position ELSE known.position END;
  v_source.last_position := v_source.last_position + json_array_length(v_page.uploads);
  v_source.found := v_source.found + v_page.found;
  IF v_page.hidden IS NOT NULL THEN
    v_source.hidden_since := CASE WHEN v_page.hidden = v_source.hidden THEN v_source.hidden_since ELSE v_now END;
    v_source.hidden_reads := CASE WHEN v_page.hidden = v_source.hidden THEN v_source.hidden_reads + 1 ELSE 1 END;
    v_source.hidden := v_page.hidden;
  END IF;
  IF v_page."end" = 'ended' AND v_source.kind = 'channel' AND v_source.continuation IS NOT NULL AND v_source.found > 0 THEN
    v_page."end" := 'repeat';
    v_source.fingerprint := NULL;
  ELSIF v_page."end" <> 'continue' THEN
    SELECT count(*) AS uploads, md5(string_agg(video_id, ' ' ORDER BY video_id)) AS ids INTO v_old FROM source_uploads
      WHERE source_id = p_id AND position > v_source.seen_position AND first_position > v_source.seen_position AND state = 'new' AND is_old;
    v_source.checked_at := v_now;
    v_source.next_check_at := coalesce(source_requested(v_source), source_tick(p_id, source_interval(p_id), v_now));
    IF v_page."end" = 'ended' AND (v_old.uploads <= 20 OR v_old.ids = v_source.odd) THEN
      v_source.seen_position := v_source.last_position;
      v_source.seen_at := v_now;
      v_source.read_at := v_source.began_at;
      v_source.odd := NULL;
    ELSE
      v_source.fingerprint := NULL;
      IF v_page."end" = 'ended' THEN
        DELETE FROM source_uploads WHERE source_id = p_id AND position > v_source.seen_position AND first_position > v_source.seen_position;
        v_source.odd := v_old.ids;
      END IF;
    END IF;
    UPDATE source_uploads SET upload = NULL WHERE source_id = p_id AND upload IS NOT NULL AND found_at < v_now - interval '30 days';
  END IF;
  UPDATE sources SET header = coalesce(v_page.header, header), last_position = v_source.last_position, found = v_source.found,
      seen_position = v_source.seen_position, seen_at = v_source.seen_at, read_at = v_source.read_at, odd = v_source.odd, fingerprint = v_source.fingerprint,
      hidden = v_source.hidden, hidden_reads = v_source.hidden_reads, hidden_since = v_source.hidden_since,
      sees_all = v_page.sees_all, for_starts = v_page.for_starts, continuation = CASE WHEN v_page."end" = 'continue' THEN v_page.continuation END,
      checked_at = v_source.checked_at, next_check_at = v_source.next_check_at, scheduled_at = v_now, setbacks = 0, unread_since = NULL,
      is_unread = false, reason = CASE WHEN v_page."end" = 'read_again' THEN 'list_incomplete' END, claim = NULL, claimed_until = NULL
    WHERE id = p_id;
  PERFORM source_spread(p_id);
  RETURN true;
END $$;

-- Stores that a check has read nothing: it is tried again after a delay. One that was asked for meanwhile is made all the same.
CREATE OR REPLACE FUNCTION source_commit_failure(p_id text, p_claim uuid, p_failure json) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_failure record;
  v_now timestamptz := clock_now();
BEGIN
  SELECT * INTO v_failure FROM json_to_record(p_failure) AS failure (
    reason text, delay_seconds double precision, setbacks integer, restarts boolean, pauses boolean);
  UPDATE sources source SET reason = v_failure.reason, is_unread = is_unread OR v_failure.pauses,
      unread_since = CASE WHEN v_failure.setbacks > setbacks THEN coalesce(unread_since, v_now) ELSE unread_since END,
      setbacks = v_failure.setbacks, claim = NULL, claimed_until = NULL, scheduled_at = v_now,
      next_check_at = coalesce(source_requested(source), v_now + make_interval(secs => v_failure.delay_seconds)),
      continuation = CASE WHEN NOT v_failure.restarts AND source_requested(source) IS NULL THEN continuation END,
      fingerprint = CASE WHEN NOT v_failure.restarts AND source_requested(source) IS NULL THEN fingerprint END
    WHERE id = p_id AND claim = p_claim;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM source_spread(p_id);
  RETURN true;
END $$;

-- Moves the subscriptions of a source that stands for the name of a channel to that of the channel.
CREATE OR REPLACE FUNCTION source_resolve(p_id text, p_claim uuid, p_channel text, p_header text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_job jobs;
BEGIN
  PERFORM FROM sources WHERE id = p_id AND claim = p_claim FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  FOR v_job IN
    SELECT * FROM jobs WHERE source_id = p_id AND state IN ('running', 'paused') AND deleted_at IS NULL LIMIT 100 FOR UPDATE SKIP LOCKED
  LOOP
    UPDATE jobs SET source_id = p_channel, channel_id = p_channel, channel = p_header WHERE id = v_job.id RETURNING * INTO v_job;
    PERFORM source_follow(v_job);
  END LOOP;
  UPDATE sources SET header = coalesce(header, p_header) WHERE id = p_channel;
  UPDATE sources SET claim = NULL, claimed_until = NULL WHERE id = p_id;
  PERFORM source_release(p_id);
  RETURN true;
END $$;

-- Makes a turn of the subscriptions of a source due when one has yet to take what it has. It is a transaction of its own, so that a
-- subscription that cannot be changed now undoes no check.
CREATE OR REPLACE FUNCTION source_spread(p_id text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE sources source SET spread_at = clock_now() WHERE id = p_id AND EXISTS (SELECT FROM source_lagging(source, 1));
END $$;

-- A turn of the subscriptions of a source: they take what was found, and are paused while it cannot be read. Those that another
-- transaction holds have a later turn. Returns those whose state has changed.
CREATE OR REPLACE FUNCTION source_turn(p_id text) RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_source sources;
  v_job jobs;
  v_turns integer := 0;
BEGIN
  SELECT * INTO v_source FROM sources WHERE id = p_id FOR UPDATE;
  FOR v_job IN
    -- In one order, because job_due locks the queues of the organizations.
    SELECT * FROM jobs WHERE id IN (SELECT * FROM source_lagging(v_source, 100)) ORDER BY organization_id, id FOR UPDATE SKIP LOCKED
  LOOP
    PERFORM source_take(v_source, v_job);
    v_turns := v_turns + 1;
    SELECT * INTO job FROM jobs WHERE id = v_job.id;
    IF job.state <> v_job.state THEN
      old_state := v_job.state;
      RETURN NEXT;
    END IF;
  END LOOP;
  UPDATE sources SET spread_at = CASE WHEN EXISTS (SELECT FROM source_lagging(v_source, 1))
                                      THEN clock_now() + CASE WHEN v_turns > 0 THEN interval '0' ELSE interval '1 second' END END,
      claim = NULL, claimed_until = NULL
    WHERE id = p_id;
END $$;

-- The subscriptions of a source that have not taken what it has, or whose state does not follow from it.
CREATE OR REPLACE FUNCTION source_lagging(p_source sources, p_max integer) RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
  (SELECT id FROM jobs WHERE source_id = p_source.id AND state IN ('running', 'paused') AND place = -1
     AND source_waits(started_at, p_source.read_at) AND deleted_at IS NULL LIMIT p_max)
  UNION
  (SELECT id FROM jobs WHERE source_id = p_source.id AND state IN ('running', 'paused') AND place >= 0 AND place < (
       SELECT max(position) FROM source_uploads
         WHERE source_id = p_source.id AND position <= p_source.seen_position AND (state = 'new' OR first_position < position))
     AND deleted_at IS NULL LIMIT p_max)
  UNION
  (SELECT id FROM jobs WHERE p_source.is_unread AND source_id = p_source.id AND state = 'running' AND deleted_at IS NULL LIMIT p_max)
  UNION
  (SELECT id FROM jobs WHERE NOT p_source.is_unread AND source_id = p_source.id AND state = 'paused'
     AND reason IN ('channel_not_found', 'playlist_not_found', 'upstream_blocked') AND deleted_at IS NULL LIMIT p_max)
$$;

-- Brings a subscription to what its source has found: at its start what it begins with, and what was published since it was
-- created; later what lies beyond its place, 100 uploads at a time. An upload that the list states anew is tried anew.
CREATE OR REPLACE FUNCTION source_take(p_source sources, p_job jobs) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_start json := p_job.request::json -> 'start';
  v_kinds text[] := source_kinds(p_job.request);
  v_count integer := CASE WHEN json_typeof(v_start) = 'number' THEN v_start::text::integer ELSE 0 END;
  v_video text := CASE WHEN json_typeof(v_start) = 'string' THEN v_start #>> '{}' END;
  v_rank integer;
  v_place integer := p_job.place;
  v_taken integer := 0;
  v_again integer := 0;
BEGIN
  IF v_place < 0 AND source_waits(p_job.started_at, p_source.read_at) THEN
    SELECT rank INTO v_rank FROM source_uploads
      WHERE source_id = p_source.id AND video_id = v_video AND rank IS NOT NULL AND rank <= 500;
    IF v_video <> 'now' THEN
      p_job.start_found := v_rank IS NOT NULL;
    END IF;
    v_place := p_source.seen_position;
    INSERT INTO job_videos (job_id, position, video_id, upload)
      SELECT p_job.id, p_job.last_position + row_number() OVER (ORDER BY rank, position), video_id, coalesce(upload, '{}') FROM (
        (SELECT * FROM source_uploads WHERE source_id = p_source.id AND rank IS NOT NULL AND source_is_wanted(kind, v_kinds)
           ORDER BY rank LIMIT v_count)
        UNION SELECT * FROM source_uploads WHERE source_id = p_source.id AND rank < v_rank AND source_is_wanted(kind, v_kinds)
        UNION SELECT * FROM source_uploads WHERE source_id = p_source.id AND upload IS NOT NULL AND found_at >= p_job.created_at
          AND published_at > p_job.created_at AND position <= v_place AND source_is_wanted(kind, v_kinds)
      ) first WHERE NOT EXISTS (SELECT FROM job_videos WHERE job_id = p_job.id AND video_id = first.video_id);
    GET DIAGNOSTICS v_taken = ROW_COUNT;
  ELSIF v_place < p_source.seen_position THEN
    SELECT coalesce(max(position), p_source.seen_position) INTO v_place FROM (
      SELECT position FROM source_uploads WHERE source_id = p_source.id AND position > p_job.place AND position <= p_source.seen_position
        AND (state = 'new' OR first_position < position) ORDER BY position LIMIT 100) next;
    INSERT INTO job_videos (job_id, position, video_id, upload)
      SELECT p_job.id, p_job.last_position + row_number() OVER (ORDER BY position), video_id, coalesce(upload, '{}') FROM source_uploads found
        WHERE source_id = p_source.id AND position > p_job.place AND position <= v_place AND first_position > p_job.place AND state = 'new'
          AND source_is_wanted(kind, v_kinds)
          AND NOT EXISTS (SELECT FROM job_videos WHERE job_id = p_job.id AND video_id = found.video_id);
    GET DIAGNOSTICS v_taken = ROW_COUNT;
    UPDATE job_videos video SET upload = found.upload, retries = 0, retry_at = NULL, decided_at = NULL FROM source_uploads found
      WHERE source_id = p_source.id AND found.position > p_job.place AND found.position <= v_place AND first_position < found.position
        AND found.upload IS NOT NULL AND job_id = p_job.id AND video.video_id = found.video_id AND video.state = 'pending';
    GET DIAGNOSTICS v_again = ROW_COUNT;
  END IF;
  IF p_source.is_unread AND p_job.state = 'running' THEN
    p_job := job_transition(p_job, 'source', p_source.reason);
  ELSIF NOT p_source.is_unread AND p_job.state = 'paused'
    AND p_job.reason IN ('channel_not_found', 'playlist_not_found', 'upstream_blocked') THEN
    p_job := job_transition(p_job, 'source');
    v_again := 1;
  END IF;
  UPDATE jobs SET place = v_place, start_found = p_job.start_found, total = total + v_taken, last_position = last_position + v_taken,
      state = p_job.state, reason = p_job.reason,
      channel_id = CASE WHEN p_source.kind = 'channel' AND p_source.header IS NOT NULL THEN p_source.id ELSE channel_id END,
      channel = CASE WHEN p_source.kind = 'channel' THEN coalesce(p_source.header, channel) END,
      playlist = CASE WHEN p_source.kind = 'playlist' THEN coalesce(p_source.header, playlist) END,
      next_run_at = CASE WHEN v_taken + v_again = 0 AND p_job.state = state THEN next_run_at
                         -- The end of a block of the videos is waited for.
                         ELSE subscription_next_run(p_job, CASE WHEN p_job.reason = 'upstream_blocked' THEN greatest(next_run_at, v_now)
                                                                ELSE v_now END) END
    WHERE id = p_job.id;
END $$;

-- The library of an organization. A text is kept, and becomes searchable, in the transaction that makes its entry final.

-- Keeps texts, each once, with their passages. p_texts is null for a slice that has none, because its job did not keep them when it
-- was claimed. One that does not keep them any more keeps none. What has no room is not kept; the first time is an event. One with
-- "rest" leaves some of its texts to a later time.
CREATE OR REPLACE FUNCTION library_keep(p_job jobs, p_texts json, p_entries bytea, p_bytes_max double precision)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations;
  v_library libraries;
  v_text record;
  v_known library_texts;
  v_start integer := 1;
  v_bytes bigint;
  v_now timestamptz := clock_now();
BEGIN
  IF p_texts IS NULL OR (p_texts ->> 'rest')::boolean THEN
    PERFORM library_catch_up(p_job);
  END IF;
  IF p_texts IS NULL OR p_job.deleted_at IS NOT NULL OR NOT library_is_wanted(p_job) THEN
    RETURN;
  END IF;
  v_organization := organization_lock(p_job.organization_id);
  IF v_organization.deleted_at IS NOT NULL THEN
    RETURN;
  END IF;
  INSERT INTO libraries (organization_id) VALUES (v_organization.id) ON CONFLICT DO NOTHING;
  SELECT * INTO v_library FROM libraries WHERE organization_id = v_organization.id;
  FOR v_text IN
    SELECT *, ARRAY(SELECT json_array_elements_text(languages)) AS language_codes, ARRAY(SELECT json_array_elements_text(choices)) AS choice_keys,
           ARRAY(SELECT name || ':' || value FROM jsonb_each_text(p_job.labels) AS pair (name, value)) AS labels
      FROM json_to_recordset(p_texts -> 'texts') AS text (
        video_id text, languages json, choices json, channel_id text, channel_handle text, published_at timestamptz, video text,
        length integer, bytes integer, crc bigint, passages json)
  LOOP
    v_start := v_start + v_text.length;
    UPDATE library_texts SET choices = ARRAY(SELECT unnest(choices) UNION SELECT unnest(v_text.choice_keys)),
        labels = ARRAY(SELECT unnest(labels) UNION SELECT unnest(v_text.labels))
      WHERE organization_id = v_organization.id AND video_id = v_text.video_id AND languages = v_text.language_codes
        AND deleted_at IS NULL;
    CONTINUE WHEN FOUND;
    IF v_library.bytes >= p_bytes_max THEN
      IF v_library.full_at IS NULL THEN
        v_library.full_at := v_now;
        PERFORM webhook_enqueue(v_organization.id, 'library.full', jsonb_build_object('videos', v_library.videos,
          'megabytes', library_megabytes(v_library.bytes), 'limitMegabytes', library_megabytes(p_bytes_max)));
      END IF;
      CONTINUE;
    END IF;
    v_library.videos := v_library.videos + (NOT EXISTS (
      SELECT FROM library_texts WHERE organization_id = v_organization.id AND video_id = v_text.video_id AND deleted_at IS NULL
    ))::integer;
    INSERT INTO library_texts (organization_id, video_id, languages, choices, labels, channel_id, channel_handle, published_at,
                               video, entry, entry_bytes, entry_crc, stored_bytes, kept_at)
      VALUES (v_organization.id, v_text.video_id, v_text.language_codes, v_text.choice_keys, v_text.labels, v_text.channel_id,
              v_text.channel_handle, coalesce(v_text.published_at, date_trunc('milliseconds', v_now)), v_text.video,
              substring(p_entries FROM v_start - v_text.length FOR v_text.length), v_text.bytes, v_text.crc, 0, v_now)
      RETURNING * INTO v_known;
    -- A language that another text of the video has is found there.
    WITH added AS (
      INSERT INTO library_passages (organization_id, text_id, language, published_at, first_segment, end_segment, words)
        SELECT v_organization.id, v_known.id, language, v_known.published_at, first, "end", words::tsvector
          FROM json_to_recordset(v_text.passages) AS passage (language text, first integer, "end" integer, words text)
          WHERE NOT EXISTS (
            SELECT FROM library_texts other WHERE other.organization_id = v_organization.id AND other.video_id = v_text.video_id
              AND other.deleted_at IS NULL AND other.id <> v_known.id AND passage.language = ANY (other.languages))
        RETURNING pg_column_size(words) AS bytes
    )
    SELECT coalesce(sum(added.bytes), 0) + v_text.length + octet_length(v_text.video) INTO v_bytes FROM added;
    UPDATE library_texts SET stored_bytes = v_bytes WHERE id = v_known.id;
    v_library.bytes := v_library.bytes + v_bytes;
  END LOOP;
  UPDATE libraries SET videos = v_library.videos, bytes = v_library.bytes, full_at = v_library.full_at
    WHERE organization_id = v_organization.id;
  UPDATE organizations SET keeps = true WHERE id = v_organization.id AND NOT keeps AND v_library.videos > 0;
  PERFORM log_keep(p_job, ARRAY(SELECT DISTINCT text ->> 'video_id' FROM json_array_elements(p_texts -> 'texts') text));
END $$;

-- Whether a job or a subscription keeps its texts at the moment.
CREATE OR REPLACE FUNCTION library_is_wanted(p_job jobs) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(p_job.request::jsonb -> 'keep' = 'true', false)
$$;

CREATE OR REPLACE FUNCTION library_megabytes(p_bytes double precision) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT ceil(p_bytes / 1048576)::integer
$$;

-- Has the stored results of a job kept, all of which are looked at, when it keeps them.
CREATE OR REPLACE FUNCTION library_catch_up(p_job jobs) RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO library_backlog (job_id)
    SELECT p_job.id WHERE library_is_wanted(p_job) AND p_job.succeeded > 0 AND p_job.deleted_at IS NULL
    ON CONFLICT (job_id) DO UPDATE SET sequence = 0, begun = library_backlog.begun + 1
$$;

-- Keeps texts of results of a job that were stored before, up to p_end, which are the next ones after p_sequence: another process
-- can have done so meanwhile.
CREATE OR REPLACE FUNCTION library_keep_stored(
  p_job_id text, p_sequence integer, p_begun integer, p_end integer, p_texts json, p_entries bytea, p_bytes_max double precision
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_job jobs;
  v_end integer;
BEGIN
  PERFORM organization_lock((SELECT organization_id FROM jobs WHERE id = p_job_id));
  SELECT * INTO v_job FROM jobs WHERE id = p_job_id FOR UPDATE;
  PERFORM FROM library_backlog WHERE job_id = p_job_id AND sequence = p_sequence AND begun = p_begun FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF NOT library_is_wanted(v_job) OR v_job.deleted_at IS NOT NULL THEN
    DELETE FROM library_backlog WHERE job_id = p_job_id;
    RETURN;
  END IF;
  -- What others have kept is in p_texts no more; 1,000 results at a time.
  v_end := coalesce(p_end, v_job.succeeded + v_job.failed);
  PERFORM log_keep(v_job, ARRAY(
    SELECT video_id FROM job_videos
      WHERE job_id = p_job_id AND sequence > p_sequence AND sequence <= least(v_end, p_sequence + 1000) AND state = 'succeeded'));
  IF v_end > p_sequence + 1000 THEN
    UPDATE library_backlog SET sequence = p_sequence + 1000 WHERE job_id = p_job_id;
  ELSIF p_end IS NOT NULL THEN
    PERFORM library_keep(v_job, p_texts, p_entries, p_bytes_max);
    UPDATE library_backlog SET sequence = p_end WHERE job_id = p_job_id;
  ELSE
    DELETE FROM library_backlog WHERE job_id = p_job_id;
  END IF;
END $$;

-- The IDs of kept channels, each of which is given by its ID or its handle, which not every text has; null for null.
CREATE OR REPLACE FUNCTION library_channels(p_organization_id text, p_channels text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_channels IS NOT NULL THEN ARRAY(
    SELECT DISTINCT channel_id FROM library_texts WHERE organization_id = p_organization_id AND deleted_at IS NULL
      AND (channel_id = ANY (p_channels) OR channel_handle = ANY (p_channels))) END
$$;

-- Whether a language is the one that a filter wants: en has en-GB too. Inlined.
CREATE OR REPLACE FUNCTION library_language_fits(p_language text, p_wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT p_wanted IS NULL OR lower(p_language) = lower(p_wanted) OR lower(p_language) LIKE lower(p_wanted) || '-%'
$$;

-- The newest p_count passages that match p_query, after the given place if one is given. A sample of 1,000 passages decides how they are
-- found. What is common is found by reading the passages of the texts that the filters let through, newest first, until there are
-- enough. What is rare is found by the index of words. A phrase or an exclusion that is rare but whose words (p_words) are common has too
-- many candidates for either, so that only the newest texts are read for it. The planner takes words for independent of each other and of
-- the filters, and would read the whole library for what is hardly in it, or the whole table, with the passages of other organizations.
CREATE OR REPLACE FUNCTION library_find(
  p_organization_id text, p_label text, p_channels text[], p_language text, p_published_after timestamptz, p_query tsquery, p_words tsquery,
  p_place_published_at timestamptz, p_place_text_id bigint, p_place_segment integer, p_place_language text, p_count integer
) RETURNS SETOF library_passages LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  v_channels text[] := library_channels(p_organization_id, p_channels);
  v_newest timestamptz;
  v_oldest timestamptz;
  v_matching integer;
  v_candidates integer;
BEGIN
  SELECT max(published_at), min(published_at) INTO v_newest, v_oldest FROM library_texts
    WHERE organization_id = p_organization_id AND deleted_at IS NULL;
  -- Closer to each other in newer times, of which there is more.
  SELECT count(*) FILTER (WHERE passage.words @@ p_query), count(*) FILTER (WHERE passage.words @@ p_words) INTO v_matching, v_candidates
    FROM generate_series(0, 24) AS part (number)
      CROSS JOIN LATERAL (
        SELECT id FROM library_texts WHERE organization_id = p_organization_id AND deleted_at IS NULL
            AND published_at <= v_newest - (v_newest - v_oldest) * (part.number / 25.0) ^ 3
          ORDER BY published_at DESC, id DESC LIMIT 2) text
      CROSS JOIN LATERAL (SELECT words FROM library_passages WHERE text_id = text.id LIMIT 20) passage;
  IF v_matching < 15 AND v_candidates >= 100 THEN
    SELECT greatest(p_published_after, min(text.published_at)) INTO p_published_after
      FROM (SELECT published_at, sum(stored_bytes) OVER (ORDER BY published_at DESC, id DESC) - stored_bytes AS bytes_before
              FROM library_texts WHERE organization_id = p_organization_id AND deleted_at IS NULL
                AND (p_label IS NULL OR p_label = ANY (labels)) AND (p_channels IS NULL OR channel_id = ANY (v_channels))) text
      WHERE text.bytes_before < 256 * 1048576;
  END IF;
  IF v_matching >= 15 OR v_candidates >= 100 THEN
    RETURN QUERY
      SELECT passage.* FROM library_texts text
          -- OFFSET keeps the planner from another order.
          CROSS JOIN LATERAL (
            SELECT * FROM library_passages each WHERE each.text_id = text.id AND each.words @@ p_query
              AND library_language_fits(each.language, p_language) OFFSET 0) passage
        WHERE text.organization_id = p_organization_id AND text.deleted_at IS NULL
          AND (p_label IS NULL OR p_label = ANY (text.labels)) AND (p_channels IS NULL OR text.channel_id = ANY (v_channels))
          AND (p_language IS NULL OR EXISTS (SELECT FROM unnest(text.languages) has WHERE library_language_fits(has, p_language)))
          AND (p_published_after IS NULL OR text.published_at >= p_published_after)
          AND (p_place_text_id IS NULL OR (text.published_at, text.id) <= (p_place_published_at, p_place_text_id)
            AND (text.id <> p_place_text_id OR (passage.first_segment, passage.language) > (p_place_segment, p_place_language)))
        ORDER BY text.published_at DESC, text.id DESC, passage.first_segment, passage.language LIMIT p_count;
  ELSE
    RETURN QUERY
      SELECT passage.* FROM library_passages passage JOIN library_texts text ON text.id = passage.text_id
        WHERE passage.organization_id = p_organization_id AND passage.words @@ p_query
          AND text.organization_id = p_organization_id AND text.deleted_at IS NULL
          AND (p_label IS NULL OR p_label = ANY (text.labels)) AND (p_channels IS NULL OR text.channel_id = ANY (v_channels))
          AND library_language_fits(passage.language, p_language)
          AND (p_published_after IS NULL OR passage.published_at >= p_published_after)
          AND (p_place_text_id IS NULL OR (passage.published_at, passage.text_id) <= (p_place_published_at, p_place_text_id)
            AND (passage.text_id <> p_place_text_id OR (passage.first_segment, passage.language) > (p_place_segment, p_place_language)))
        ORDER BY passage.published_at DESC, passage.text_id DESC, passage.first_segment, passage.language LIMIT p_count;
  END IF;
END $$;

-- Deletes what an organization keeps of a video, or of channels. It is not found from then on. Returns the number of videos.
CREATE OR REPLACE FUNCTION library_delete(p_organization_id text, p_video_id text, p_channels text[])
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_deleted record;
BEGIN
  PERFORM organization_lock(p_organization_id);
  WITH deleted AS (
    UPDATE library_texts SET deleted_at = clock_now()
      WHERE organization_id = p_organization_id AND deleted_at IS NULL
        AND (video_id = p_video_id OR channel_id = ANY (library_channels(p_organization_id, p_channels)))
      RETURNING video_id, stored_bytes
  )
  SELECT count(DISTINCT video_id)::integer AS videos, coalesce(sum(stored_bytes), 0) AS bytes, array_agg(DISTINCT video_id) AS ids
    INTO v_deleted FROM deleted;
  PERFORM log_release(p_organization_id, NULL, v_deleted.ids);
  UPDATE libraries SET videos = videos - v_deleted.videos, bytes = bytes - v_deleted.bytes,
      full_at = CASE WHEN v_deleted.videos = 0 THEN full_at END
    WHERE organization_id = p_organization_id;
  UPDATE organizations SET keeps = false
    WHERE id = p_organization_id AND (SELECT videos FROM libraries WHERE organization_id = p_organization_id) = 0;
  RETURN v_deleted.videos;
END $$;

-- Removes rows of deleted texts, some at a time. Returns the number of removed rows.
CREATE OR REPLACE FUNCTION library_remove_batch(p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_text_id bigint;
  v_removed integer;
BEGIN
  SELECT id INTO v_text_id FROM library_texts WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  DELETE FROM library_passages WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM library_passages WHERE text_id = v_text_id LIMIT p_rows_max));
  GET DIAGNOSTICS v_removed = ROW_COUNT;
  IF v_removed < p_rows_max THEN
    DELETE FROM library_texts WHERE id = v_text_id;
    v_removed := v_removed + FOUND::integer;
  END IF;
  RETURN v_removed;
END $$;

-- What an organization keeps is deleted with it.
CREATE OR REPLACE FUNCTION library_organization_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE library_texts SET deleted_at = clock_now() WHERE organization_id = NEW.id AND deleted_at IS NULL;
  DELETE FROM libraries WHERE organization_id = NEW.id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER library_organization_deleted AFTER UPDATE ON organizations FOR EACH ROW
  WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION library_organization_deleted();

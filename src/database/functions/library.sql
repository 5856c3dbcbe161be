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
BEGIN
  PERFORM organization_lock((SELECT organization_id FROM jobs WHERE id = p_job_id));
  SELECT * INTO v_job FROM jobs WHERE id = p_job_id;
  PERFORM FROM library_backlog WHERE job_id = p_job_id AND sequence = p_sequence AND begun = p_begun FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF library_is_wanted(v_job) AND v_job.deleted_at IS NULL AND p_end IS NOT NULL THEN
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
  SELECT count(DISTINCT video_id)::integer AS videos, coalesce(sum(stored_bytes), 0) AS bytes INTO v_deleted FROM deleted;
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

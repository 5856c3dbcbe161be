-- The library: the texts that organizations keep until they delete them, and their passages, which are searched.

-- Trusted since PostgreSQL 13, so that the owner of the database can create it.
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- Whether the organization has kept a text, so that the calls of others look for none.
ALTER TABLE organizations ADD COLUMN keeps boolean NOT NULL DEFAULT false;

-- What an organization keeps, changed under its lock.
CREATE TABLE libraries (
  organization_id text PRIMARY KEY REFERENCES organizations (id),
  videos integer NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  -- Since when texts are not kept, because there is no room.
  full_at timestamptz
);

-- A text in one or several languages, as the cache has it.
CREATE TABLE library_texts (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  organization_id text NOT NULL REFERENCES organizations (id),
  video_id text NOT NULL,
  languages text[] NOT NULL,
  -- The requests for languages that it answers, as in the keys of the cache.
  choices text[] NOT NULL,
  -- Labels of the jobs and subscriptions that have kept it, as name:value.
  labels text[] NOT NULL,
  channel_id text,
  channel_handle text,
  -- The exact time, else by the age that the list stated, else when it was kept.
  published_at timestamptz NOT NULL,
  -- JSON, as text: jsonb refuses characters that JSON can escape.
  video text NOT NULL,
  entry bytea NOT NULL,
  entry_bytes integer NOT NULL,
  entry_crc bigint NOT NULL,
  -- With its passages.
  stored_bytes integer NOT NULL,
  kept_at timestamptz NOT NULL,
  -- It is not found any more, and its rows are removed.
  deleted_at timestamptz
);
-- The text is deflated, so compressing it again only costs time.
ALTER TABLE library_texts ALTER COLUMN entry SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX library_texts_video ON library_texts (organization_id, video_id, languages) WHERE deleted_at IS NULL;
CREATE INDEX library_texts_newest ON library_texts (organization_id, published_at, id) WHERE deleted_at IS NULL;
CREATE INDEX library_texts_channel ON library_texts (organization_id, channel_id) WHERE deleted_at IS NULL;
CREATE INDEX library_texts_handle ON library_texts (organization_id, channel_handle) WHERE deleted_at IS NULL;
CREATE INDEX library_texts_deleted ON library_texts (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE library_passages (
  organization_id text NOT NULL,
  text_id bigint NOT NULL,
  language text NOT NULL,
  -- That of the text.
  published_at timestamptz NOT NULL,
  -- The segments of the language, from the first to the one before the end.
  first_segment integer NOT NULL,
  end_segment integer NOT NULL,
  words tsvector NOT NULL
);
CREATE INDEX library_passages_words ON library_passages USING gin (organization_id, words);
CREATE INDEX library_passages_text ON library_passages (text_id);

-- Jobs and subscriptions with results from before they keep them.
CREATE TABLE library_backlog (
  job_id text PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  -- The results up to this one are kept.
  sequence integer NOT NULL DEFAULT 0,
  -- How often it began anew.
  begun integer NOT NULL DEFAULT 1
);

-- Customers, their API keys, and who changed them.

CREATE TABLE organizations (
  id text PRIMARY KEY,
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  plan text NOT NULL CHECK (plan IN ('free', 'pro')),
  -- Null for the limit of the plan.
  monthly_limit integer CHECK (monthly_limit >= 0),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- A deleted organization keeps its row, because its usage remains available.
  deleted_at timestamptz
);
CREATE INDEX organizations_created ON organizations (created_at, id);
CREATE INDEX organizations_name ON organizations (name);
CREATE INDEX organizations_deleted ON organizations (id) WHERE deleted_at IS NOT NULL;

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  -- The first characters of the key, for people; the key itself is not stored.
  prefix text NOT NULL,
  -- SHA-256 of the key.
  hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Accurate to one minute.
  last_used_at timestamptz,
  -- The key that it was rotated to.
  replaced_by text REFERENCES api_keys (id)
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, created_at, id);

-- What operators changed, over HTTP and by commands. It is stored as long as usage.
CREATE TABLE audit_entries (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor text NOT NULL CHECK (actor IN ('admin', 'cli')),
  action text NOT NULL,
  -- Null for a change of all organizations.
  organization_id text REFERENCES organizations (id),
  target text,
  before jsonb,
  after jsonb,
  request_id text,
  -- The service's own ID of the request, and the address that it came from.
  call_id text,
  address text
);
CREATE INDEX audit_entries_organization ON audit_entries (organization_id, id);
CREATE INDEX audit_entries_at ON audit_entries (at);

-- The quota.

-- What was charged in a calendar month (UTC); it can be recomputed from the reservations.
CREATE TABLE quota_periods (
  organization_id text NOT NULL REFERENCES organizations (id),
  period_start date NOT NULL CHECK (extract(day FROM period_start) = 1),
  used integer NOT NULL CHECK (used >= 0),
  PRIMARY KEY (organization_id, period_start)
);

-- A row per call that reserved quota. It ends settled, or stays as it is when its lease expired. Its settlement changes no
-- column of an index and has room on the page, so that no index is written again (a HOT update).
CREATE TABLE quota_reservations (
  id uuid PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  key_id text NOT NULL REFERENCES api_keys (id),
  -- The caller's, for support.
  request_id text NOT NULL,
  -- What the call is about: a channel, a playlist or a video.
  channel_id text NOT NULL,
  period_start date NOT NULL CHECK (extract(day FROM period_start) = 1),
  -- The most that the call can cost, in transcripts.
  required integer NOT NULL CHECK (required >= 0),
  created_at timestamptz NOT NULL,
  leased_until timestamptz NOT NULL,
  settled_at timestamptz,
  fetched integer CHECK (fetched >= 0),
  -- Fetched without a charge, because the settlement came after the lease and no longer fitted under the limit.
  forfeited integer NOT NULL DEFAULT 0 CHECK (forfeited >= 0),
  charged integer GENERATED ALWAYS AS (fetched - forfeited) STORED CHECK (charged BETWEEN 0 AND required),
  CHECK ((settled_at IS NULL) = (fetched IS NULL)),
  CHECK (settled_at IS NOT NULL OR forfeited = 0)
) WITH (fillfactor = 90);
-- By the day in UTC, which many rows share: such an index is small.
CREATE INDEX quota_reservations_day ON quota_reservations (organization_id, ((created_at AT TIME ZONE 'UTC')::date));

-- The reservations that count, as few as the calls in flight. A row is removed by the settlement, or when its lease was seen
-- to have expired. Only who has locked the organization writes here.
CREATE TABLE quota_open_reservations (
  organization_id text NOT NULL,
  reservation_id uuid NOT NULL,
  period_start date NOT NULL,
  required integer NOT NULL,
  leased_until timestamptz NOT NULL,
  PRIMARY KEY (organization_id, reservation_id)
);

-- Webhooks and their deliveries.

CREATE TABLE webhooks (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  url text NOT NULL CHECK (char_length(url) <= 2048),
  -- Null for all events.
  events text[],
  -- Encrypted, as is the previous one, which signs deliveries too until its time is over.
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz NOT NULL,
  -- The process that is sending a delivery, and the end of its lease; then the end of the attempt, or of the pause after it.
  claim uuid,
  claimed_until timestamptz,
  -- The end of the last attempt that was recorded, or of the pause after it.
  rested_until timestamptz,
  -- Whether the last attempt succeeded.
  healthy boolean NOT NULL DEFAULT false,
  -- Since when no delivery has succeeded.
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text CHECK (disabled_reason IN ('gone', 'failing')),
  CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL)),
  CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL))
);
CREATE INDEX webhooks_organization ON webhooks (organization_id, created_at, id);
CREATE INDEX webhooks_secrets ON webhooks (previous_secret_until) WHERE previous_secret_until IS NOT NULL;

CREATE TABLE webhook_deliveries (
  -- As in a UUID of version 7 the time comes first, so that the newest ones share the last pages of the index.
  id text PRIMARY KEY DEFAULT 'msg_' || lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
    || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14),
  webhook_id text NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  type text NOT NULL,
  data jsonb NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
  created_at timestamptz NOT NULL,
  next_attempt_at timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  last_attempt_at timestamptz,
  response_status integer,
  error text,
  duration_ms integer,
  CHECK ((state = 'pending') = (next_attempt_at IS NOT NULL))
);
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at);
-- Only what waits is in them, so that a look for due deliveries costs nothing while there are none.
CREATE INDEX webhook_deliveries_tried ON webhook_deliveries (webhook_id, attempts DESC, next_attempt_at)
  WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, next_attempt_at)
  WHERE next_attempt_at IS NOT NULL;

-- Events that were not sent because a webhook had too many waiting deliveries. A sequence, so that counting locks nothing.
CREATE SEQUENCE webhook_events_dropped;

-- Archive jobs, their videos and their results.

CREATE TABLE jobs (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  key_id text NOT NULL REFERENCES api_keys (id),
  idempotency_key text,
  -- The channel as it was requested.
  reference text NOT NULL,
  languages text[] NOT NULL,
  video_limit integer CHECK (video_limit > 0),
  since text,
  on_quota text NOT NULL CHECK (on_quota IN ('pause', 'fail')),
  -- How long the results of the finished job are stored.
  results_seconds integer NOT NULL,
  state text NOT NULL DEFAULT 'queued'
    CHECK (state IN ('queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed')),
  reason text,
  channel_id text,
  -- JSON of the channel, as text: jsonb refuses characters that JSON can escape.
  channel text,
  -- Where the listing goes on.
  continuation text,
  listed_at timestamptz,
  -- When the list is read again that ended incomplete; until then what it has is read.
  list_retry_at timestamptz,
  total integer NOT NULL DEFAULT 0,
  succeeded integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  cached integer NOT NULL DEFAULT 0,
  fetched integer NOT NULL DEFAULT 0,
  stored_bytes bigint NOT NULL DEFAULT 0,
  -- Consecutive slices that failed.
  setbacks integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  expires_at timestamptz,
  deleted_at timestamptz,
  -- When results of it, or the job itself, are to be removed.
  remove_at timestamptz,
  -- Null while nothing is to be done.
  next_run_at timestamptz,
  -- The running slice, until its lease ends.
  claim uuid,
  claimed_until timestamptz,
  UNIQUE (organization_id, idempotency_key),
  CHECK (succeeded = cached + fetched AND succeeded + failed <= total),
  CHECK ((finished_at IS NULL) = (state NOT IN ('completed', 'canceled', 'failed'))),
  CHECK (next_run_at IS NULL OR (finished_at IS NULL AND deleted_at IS NULL))
);
CREATE INDEX jobs_due ON jobs (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX jobs_queue ON jobs (organization_id, next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX jobs_created ON jobs (organization_id, created_at, id);
-- The jobs that go on when something changes at their organization.
CREATE INDEX jobs_waiting ON jobs (organization_id, reason) WHERE finished_at IS NULL AND next_run_at IS NULL;
CREATE INDEX jobs_setbacks ON jobs (setbacks) WHERE finished_at IS NULL AND state <> 'paused' AND setbacks > 0;
CREATE INDEX jobs_removable ON jobs (remove_at) WHERE remove_at IS NOT NULL;

-- The turns of the organizations that have had a job, so that a claim reads neither all that is due nor all that waits. No
-- slice of an organization is due before turn_at, which is the time of its last slice while it has others, and null while
-- nothing is to be done.
CREATE TABLE job_queues (
  organization_id text PRIMARY KEY REFERENCES organizations (id),
  turn_at timestamptz,
  last_turn_at timestamptz NOT NULL DEFAULT 'epoch'
);
CREATE INDEX job_queues_turn ON job_queues (turn_at);

-- The jobs of each state and their results, as changes that job_sweep adds up: one row for each state would make all slices
-- wait for each other.
CREATE TABLE job_counts (state text NOT NULL, reason text, jobs bigint NOT NULL, stored_bytes bigint NOT NULL);

CREATE TABLE job_videos (
  job_id text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  position integer NOT NULL CHECK (position > 0),
  video_id text NOT NULL,
  -- JSON of the listed upload.
  upload text NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
  retries smallint NOT NULL DEFAULT 0,
  retry_at timestamptz,
  -- Of a pending video that is tried again: the code of its last failure.
  error_code text,
  cached boolean,
  -- The entry of the results as deflated JSON, the length of the JSON and its checksum.
  entry bytea,
  entry_bytes integer,
  entry_crc bigint,
  PRIMARY KEY (job_id, position),
  UNIQUE (job_id, video_id),
  CHECK ((state = 'pending') = (entry IS NULL)),
  CHECK ((state = 'succeeded') = (cached IS NOT NULL))
);
-- The entries are deflated, so compressing them again only costs time.
ALTER TABLE job_videos ALTER COLUMN entry SET STORAGE EXTERNAL;
CREATE INDEX job_videos_pending ON job_videos (job_id, position) WHERE state = 'pending';

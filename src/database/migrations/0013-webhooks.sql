-- Webhooks with labels, a header of their own and replays, claimed by the time at which they are due next. The functions need
-- it at once: every process of the service must be stopped for this migration.

ALTER TABLE webhooks
  -- What the labels of an event must contain.
  ADD COLUMN labels jsonb NOT NULL DEFAULT '{}',
  -- The value of the header Authorization, encrypted.
  ADD COLUMN authorization_header bytea,
  -- Identifies the request that created it, whatever was changed since.
  ADD COLUMN request_mac bytea,
  ADD COLUMN host text GENERATED ALWAYS AS (substring(url FROM '^[a-z]+://(\[[^]]+\]|[^/:?#]+)')) STORED,
  -- Whether a delivery to its URL has ever succeeded.
  ADD COLUMN confirmed boolean NOT NULL DEFAULT false,
  -- When its next delivery is due and its pause has ended; null when nothing waits and while it is turned off.
  ADD COLUMN due_at timestamptz,
  -- The entries of the organization's log after this one are sent again; null when there is no replay.
  ADD COLUMN replay_after bigint;
ALTER TABLE webhook_deliveries
  -- The webhook-id of the message; null when it is the ID of the delivery.
  ADD COLUMN event_id text,
  -- When the event of a replay occurred; null for created_at.
  ADD COLUMN occurred_at timestamptz,
  ALTER COLUMN id SET DEFAULT 'dlv_' || lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
    || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14);

-- claimed_until no longer has the pause after an attempt, which is in rested_until.
UPDATE webhooks SET claim = NULL, claimed_until = NULL,
  confirmed = healthy OR EXISTS (SELECT FROM webhook_deliveries WHERE webhook_id = webhooks.id AND state = 'succeeded'),
  due_at = CASE WHEN disabled_at IS NULL THEN (
    SELECT greatest(next_attempt_at, rested_until) FROM webhook_deliveries
      WHERE webhook_id = webhooks.id AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1) END;

-- What is being sent to is in the second one, which is small.
CREATE INDEX webhooks_due ON webhooks (healthy, due_at) WHERE claim IS NULL AND due_at IS NOT NULL;
CREATE INDEX webhooks_claimed ON webhooks (claimed_until) WHERE claim IS NOT NULL;
CREATE INDEX webhooks_confirmed ON webhooks (host) WHERE confirmed;
-- Deliveries that succeeded are stored for a shorter time.
DROP INDEX webhook_deliveries_age;
CREATE INDEX webhook_deliveries_succeeded ON webhook_deliveries (created_at) WHERE state = 'succeeded';
CREATE INDEX webhook_deliveries_unsent ON webhook_deliveries (created_at) WHERE state <> 'succeeded';

-- The data of the event of an entry, for replays. That of an earlier one is in a delivery; otherwise it is made of what was listed,
-- which does not tell why an upload has no transcript: without a delivery such an entry is not sent again. JSON with characters that
-- jsonb refuses is left out.
ALTER TABLE log_entries ADD COLUMN event jsonb;
WITH sent AS (
  SELECT DISTINCT ON (data->>'subscriptionId', data->>'videoId') data->>'subscriptionId' AS job_id, data->>'videoId' AS video_id, data
    FROM webhook_deliveries WHERE type LIKE 'upload.%'
), entries AS (
  SELECT log.organization_id, log.sequence, video.job_id, video.video_id, video.state,
         format('/subscriptions/%s/results?after=%s&limit=1', video.job_id, video.sequence - 1) AS path,
         CASE WHEN video.upload !~* '\\u(0000|d[89a-f])' THEN video.upload::jsonb ELSE '{}' END AS upload,
         CASE WHEN job.channel !~* '\\u(0000|d[89a-f])' THEN job.channel::jsonb END AS channel
    FROM log_entries log JOIN job_videos video USING (job_id, position) JOIN jobs job ON job.id = video.job_id
)
UPDATE log_entries log SET event = jsonb_build_object(
    'subscriptionId', entries.job_id, 'labels', '{}'::jsonb, 'channel', entries.channel, 'videoId', entries.video_id,
    'url', 'https://www.youtube.com/watch?v=' || entries.video_id, 'title', entries.upload->'title',
    'publishedAt', entries.upload->'publishedAt', 'code', NULL) || coalesce(sent.data, '{}')
    || jsonb_build_object('results', entries.path)
  FROM entries LEFT JOIN sent USING (job_id, video_id)
  WHERE log.organization_id = entries.organization_id AND log.sequence = entries.sequence
    AND (sent.data IS NOT NULL OR entries.state = 'succeeded');

/**
 * Webhooks and their deliveries. A delivery that waits has a `next_attempt_at`; one that a process is sending has a
 * `claim`, and its `next_attempt_at` is the end of the lease, so that a process that was killed delays it and never loses
 * it. Every function locks the webhook before its deliveries.
 */
export const WEBHOOKS = `
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
  -- A deleted webhook is marked, because its deliveries are removed in batches.
  deleted_at timestamptz,
  last_claimed_at timestamptz,
  -- Since when no delivery has succeeded.
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text CHECK (disabled_reason IN ('gone', 'failing')),
  CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL)),
  CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL))
);
CREATE INDEX webhooks_organization ON webhooks (organization_id, created_at, id);
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at IS NOT NULL;

CREATE TABLE webhook_deliveries (
  id text PRIMARY KEY DEFAULT 'msg_' || replace(gen_random_uuid()::text, '-', ''),
  webhook_id text NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  type text NOT NULL,
  data jsonb NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
  created_at timestamptz NOT NULL,
  next_attempt_at timestamptz,
  claim uuid,
  attempts integer NOT NULL DEFAULT 0,
  last_attempt_at timestamptz,
  response_status integer,
  error text,
  duration_ms integer,
  CHECK ((state = 'pending') = (next_attempt_at IS NOT NULL)),
  CHECK (state = 'pending' OR claim IS NULL)
);
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at);
-- Only what waits is in it, so that a look for due deliveries costs nothing while there are none.
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, next_attempt_at)
  WHERE next_attempt_at IS NOT NULL;
-- Counts the events that a full webhook did not get, without a lock.
CREATE SEQUENCE webhook_deliveries_dropped;

-- No row when the organization was deleted. The organization is locked before its webhooks are counted.
CREATE FUNCTION webhook_create(
  p_id text, p_organization_id text, p_url text, p_events text[], p_secret bytea, p_webhooks_max integer
) RETURNS TABLE (outcome text, webhook webhooks) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations := quota_lock(p_organization_id);
BEGIN
  IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
    RETURN;
  END IF;
  IF (SELECT count(*) FROM webhooks WHERE organization_id = p_organization_id AND deleted_at IS NULL)
    >= p_webhooks_max THEN
    outcome := 'too_many';
  ELSE
    outcome := 'created';
    INSERT INTO webhooks (id, organization_id, url, events, secret, created_at)
      VALUES (p_id, p_organization_id, p_url, p_events, p_secret, quota_now()) RETURNING * INTO webhook;
  END IF;
  RETURN NEXT;
END $$;

-- Stores an event for every webhook of an organization. A webhook whose row is being removed is skipped without waiting: a
-- removal must neither fail nor delay the caller's transaction. Beyond 1,000 waiting deliveries an event is stored as a
-- failed delivery: to fail an older one instead would wait for the process that sends it.
CREATE FUNCTION webhook_enqueue(p_organization_id text, p_type text, p_data jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := quota_now();
  v_id text;
BEGIN
  FOR v_id IN
    SELECT id FROM webhooks
      WHERE organization_id = p_organization_id AND disabled_at IS NULL AND deleted_at IS NULL
        AND (events IS NULL OR p_type = ANY (events))
      FOR KEY SHARE SKIP LOCKED
  LOOP
    IF (SELECT count(*) FROM (
          SELECT FROM webhook_deliveries WHERE webhook_id = v_id AND next_attempt_at IS NOT NULL LIMIT 1000
        ) waiting) < 1000 THEN
      INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
        VALUES (v_id, p_type, p_data, v_now, v_now);
    ELSE
      PERFORM nextval('webhook_deliveries_dropped');
      INSERT INTO webhook_deliveries (webhook_id, type, data, state, created_at, error)
        VALUES (v_id, p_type, p_data, 'failed', v_now, 'The webhook has 1000 waiting deliveries.');
    END IF;
  END LOOP;
END $$;

-- Claims due deliveries. One delivery of a webhook at a time, the one that waits longest first, so that a receiver that does
-- not respond occupies one connection. The webhooks take turns, the one whose last claim is oldest first: otherwise those
-- with slow receivers, whose deliveries wait longest, would get every connection that becomes free. The webhook is locked
-- before its deliveries are looked at in later statements, which see what was committed while another process held the
-- lock. The first loop visits each webhook with waiting deliveries once, by the index, however many deliveries it has.
CREATE FUNCTION webhook_claim(
  p_claim uuid, p_deliveries_max integer, p_lease_seconds double precision, p_key_ids bytea[]
) RETURNS TABLE (
  delivery_id text, webhook_id text, organization_id text, url text, type text, data text, created_at timestamptz,
  attempts integer, secret bytea, previous_secret bytea
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := quota_now();
  v_claimed integer := 0;
  v_id text;
  v_webhook webhooks;
  v_delivery webhook_deliveries;
BEGIN
  FOR v_id IN
    WITH RECURSIVE waiting AS (
      SELECT (SELECT min(first.webhook_id) FROM webhook_deliveries first WHERE first.next_attempt_at IS NOT NULL) AS id
      UNION ALL
      SELECT (SELECT min(further.webhook_id) FROM webhook_deliveries further
                WHERE further.next_attempt_at IS NOT NULL AND further.webhook_id > waiting.id)
        FROM waiting WHERE waiting.id IS NOT NULL
    )
    SELECT waiting.id FROM waiting CROSS JOIN LATERAL (
      SELECT min(delivery.next_attempt_at) AS due_at FROM webhook_deliveries delivery
        WHERE delivery.webhook_id = waiting.id AND delivery.next_attempt_at IS NOT NULL
    ) earliest
    JOIN webhooks turn ON turn.id = waiting.id
    WHERE earliest.due_at <= v_now ORDER BY turn.last_claimed_at NULLS FIRST, earliest.due_at
  LOOP
    SELECT webhook.* INTO v_webhook FROM webhooks webhook
      WHERE webhook.id = v_id AND webhook.disabled_at IS NULL AND webhook.deleted_at IS NULL
        AND substr(webhook.secret, 1, 8) = ANY (p_key_ids)
        AND EXISTS (SELECT FROM organizations WHERE id = webhook.organization_id AND deleted_at IS NULL)
      FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    CONTINUE WHEN EXISTS (
      SELECT FROM webhook_deliveries sending
        WHERE sending.webhook_id = v_id AND sending.next_attempt_at > v_now AND sending.claim IS NOT NULL);
    UPDATE webhook_deliveries SET claim = p_claim, next_attempt_at = v_now + make_interval(secs => p_lease_seconds)
      WHERE id = (
        SELECT id FROM webhook_deliveries due
          WHERE due.webhook_id = v_id AND due.next_attempt_at <= v_now ORDER BY due.next_attempt_at LIMIT 1)
      RETURNING * INTO v_delivery;
    CONTINUE WHEN NOT FOUND;
    UPDATE webhooks SET last_claimed_at = v_now WHERE id = v_id;
    RETURN QUERY SELECT v_delivery.id, v_id, v_webhook.organization_id, v_webhook.url, v_delivery.type,
      v_delivery.data::text, v_delivery.created_at, v_delivery.attempts, v_webhook.secret,
      CASE WHEN v_webhook.previous_secret_until > v_now THEN v_webhook.previous_secret END;
    v_claimed := v_claimed + 1;
    EXIT WHEN v_claimed >= p_deliveries_max;
  END LOOP;
END $$;

-- Records an attempt. p_outcome is succeeded, failed or gone (the receiver wants no more deliveries). Without p_pause_seconds a failure was the
-- last attempt. A webhook is turned off when it is gone, or when a delivery was given up and none has succeeded for
-- p_failing_seconds. Nothing is recorded when the delivery was claimed again or removed meanwhile.
CREATE FUNCTION webhook_record(
  p_delivery_id text, p_claim uuid, p_outcome text, p_status integer, p_error text, p_duration_ms integer,
  p_pause_seconds double precision, p_failing_seconds double precision,
  OUT recorded boolean, OUT disabled text
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz;
  v_webhook webhooks;
  v_again boolean := p_outcome = 'failed' AND p_pause_seconds IS NOT NULL;
BEGIN
  recorded := false;
  SELECT * INTO v_webhook FROM webhooks
    WHERE id = (SELECT webhook_id FROM webhook_deliveries WHERE id = p_delivery_id) FOR NO KEY UPDATE;
  v_now := quota_now();
  UPDATE webhook_deliveries
    SET state = CASE WHEN v_again THEN 'pending' WHEN p_outcome = 'succeeded' THEN 'succeeded' ELSE 'failed' END,
        next_attempt_at = CASE WHEN v_again THEN v_now + make_interval(secs => p_pause_seconds) END,
        claim = NULL, attempts = attempts + 1, last_attempt_at = v_now, response_status = p_status, error = p_error,
        duration_ms = p_duration_ms
    WHERE id = p_delivery_id AND claim = p_claim;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  recorded := true;
  IF p_outcome = 'succeeded' THEN
    UPDATE webhooks SET failing_since = NULL WHERE id = v_webhook.id AND failing_since IS NOT NULL;
    RETURN;
  END IF;
  IF p_outcome = 'gone' THEN
    disabled := 'gone';
  ELSIF NOT v_again AND v_webhook.failing_since <= v_now - make_interval(secs => p_failing_seconds) THEN
    disabled := 'failing';
  END IF;
  UPDATE webhooks
    SET failing_since = coalesce(failing_since, v_now), disabled_reason = disabled,
        disabled_at = CASE WHEN disabled IS NOT NULL THEN v_now END
    WHERE id = v_webhook.id AND (failing_since IS NULL OR disabled IS NOT NULL);
  IF disabled IS NOT NULL THEN
    UPDATE webhook_deliveries
      SET state = 'failed', next_attempt_at = NULL, claim = NULL, error = 'The webhook was turned off.'
      WHERE webhook_id = v_webhook.id AND next_attempt_at IS NOT NULL;
  END IF;
END $$;
`;

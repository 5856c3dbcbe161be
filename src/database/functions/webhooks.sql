-- Webhooks and their deliveries. A delivery that waits has a next_attempt_at. A process that is sending one has claimed its
-- webhook until the end of a lease, so that a process that was killed delays a delivery and never loses it. Every function
-- locks the webhook before it looks at its deliveries, in a later statement.

-- The new webhook, or the one that has its ID: that of a request which is repeated with its idempotency key. No row when the
-- organization has p_webhooks_max already. It is locked before they are counted.
CREATE OR REPLACE FUNCTION webhook_create(
  p_id text, p_organization_id text, p_url text, p_events text[], p_secret bytea, p_webhooks_max integer
) RETURNS SETOF webhooks LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM organization_lock(p_organization_id);
  RETURN QUERY SELECT * FROM webhooks WHERE id = p_id AND organization_id = p_organization_id;
  IF FOUND THEN
    RETURN;
  END IF;
  RETURN QUERY INSERT INTO webhooks (id, organization_id, url, events, secret, created_at)
    SELECT p_id, p_organization_id, p_url, p_events, p_secret, clock_now()
      WHERE (SELECT count(*) FROM webhooks WHERE organization_id = p_organization_id) < p_webhooks_max
    RETURNING *;
END $$;

-- Deletes a webhook with its deliveries; a row when there was one. The deliveries, which can take seconds, come before the lock
-- for which webhook_enqueue waits.
CREATE OR REPLACE FUNCTION webhook_delete(p_id text, p_organization_id text) RETURNS SETOF webhooks
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM webhooks WHERE id = p_id AND organization_id = p_organization_id FOR NO KEY UPDATE;
  IF FOUND THEN
    DELETE FROM webhook_deliveries WHERE webhook_id = p_id;
    RETURN QUERY DELETE FROM webhooks WHERE id = p_id RETURNING *;
  END IF;
END $$;

-- Stores an event for every webhook of an organization. Waits for the end of the deletion of one, which can be rolled back. Beyond
-- 1,000 waiting deliveries events are counted and not sent: to fail an older one instead would wait for the process that sends it. One
-- an hour is stored, as a failed delivery.
CREATE OR REPLACE FUNCTION webhook_enqueue(p_organization_id text, p_type text, p_data jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_id text;
  -- Null while the queue has room.
  v_full text;
BEGIN
  FOR v_id IN
    SELECT id FROM webhooks
      WHERE organization_id = p_organization_id AND disabled_at IS NULL AND (events IS NULL OR p_type = ANY (events))
      ORDER BY id FOR KEY SHARE
  LOOP
    SELECT CASE WHEN count(*) >= 1000 THEN 'The webhook has 1000 waiting deliveries.' END INTO v_full FROM (
      SELECT FROM webhook_deliveries WHERE webhook_id = v_id AND next_attempt_at IS NOT NULL LIMIT 1000
    ) waiting;
    IF v_full IS NOT NULL THEN
      PERFORM nextval('webhook_events_dropped');
      CONTINUE WHEN EXISTS (
        SELECT FROM webhook_deliveries
          WHERE webhook_id = v_id AND created_at > v_now - interval '1 hour' AND error = v_full
      );
    END IF;
    INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, state, next_attempt_at, error)
      VALUES (v_id, p_type, p_data, v_now, CASE WHEN v_full IS NULL THEN 'pending' ELSE 'failed' END,
              CASE WHEN v_full IS NULL THEN v_now END, v_full);
  END LOOP;
END $$;

-- The webhooks with waiting deliveries, each with the earliest. Recursive, because it reads one delivery of each webhook.
CREATE OR REPLACE VIEW webhook_queues AS
  WITH RECURSIVE queue AS (
    (SELECT webhook_id, next_attempt_at FROM webhook_deliveries
       WHERE next_attempt_at IS NOT NULL ORDER BY webhook_id, next_attempt_at LIMIT 1)
    UNION ALL SELECT following.* FROM queue, LATERAL (
      SELECT webhook_id, next_attempt_at FROM webhook_deliveries
        WHERE next_attempt_at IS NOT NULL AND webhook_id > queue.webhook_id
        ORDER BY webhook_id, next_attempt_at LIMIT 1) following
  ) SELECT * FROM queue;

-- Claims webhooks with due deliveries, and returns the delivery of each that was tried most, then is due longest. A webhook has
-- one delivery at a time, an organization p_organization_max, counted apart for healthy webhooks and others. The organizations
-- take turns, then the webhooks, the one whose last attempt is longest ago first: otherwise those with slow receivers would get
-- every connection that becomes free.
CREATE OR REPLACE FUNCTION webhook_claim(
  p_claim uuid, p_healthy boolean, p_webhooks_max integer, p_organization_max integer, p_lease_seconds double precision
) RETURNS TABLE (
  delivery_id text, webhook_id text, organization_id text, url text, type text, data text, created_at timestamptz,
  attempts integer, secret bytea, previous_secret bytea
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_now();
  v_webhook webhooks;
BEGIN
  FOR v_webhook IN
    SELECT webhook.* FROM webhooks webhook JOIN (
        -- Those that are being sent to count, and come first.
        SELECT id, row_number() OVER (
            PARTITION BY organization_id ORDER BY coalesce(claimed_until > v_now, false) DESC, claimed_until NULLS FIRST
          ) AS turn
          FROM webhooks
          WHERE healthy = p_healthy AND disabled_at IS NULL
            AND (claim IS NOT NULL OR claimed_until IS NULL OR claimed_until <= v_now)
            AND id IN (SELECT webhook_id FROM webhook_queues WHERE next_attempt_at <= v_now)
      ) queue ON queue.id = webhook.id
      WHERE turn <= p_organization_max AND disabled_at IS NULL AND (claimed_until IS NULL OR claimed_until <= v_now)
        AND EXISTS (SELECT FROM organizations WHERE id = webhook.organization_id AND deleted_at IS NULL)
      ORDER BY turn, claimed_until NULLS FIRST LIMIT p_webhooks_max
      FOR NO KEY UPDATE OF webhook SKIP LOCKED
  LOOP
    RETURN QUERY SELECT delivery.id, v_webhook.id, v_webhook.organization_id, v_webhook.url, delivery.type,
      delivery.data::text, delivery.created_at, delivery.attempts, v_webhook.secret,
      CASE WHEN v_webhook.previous_secret_until > v_now THEN v_webhook.previous_secret END
      FROM webhook_deliveries delivery WHERE webhook_id = v_webhook.id AND next_attempt_at <= v_now
      ORDER BY attempts DESC, next_attempt_at LIMIT 1;
    IF FOUND THEN
      UPDATE webhooks SET claim = p_claim, claimed_until = v_now + make_interval(secs => p_lease_seconds)
        WHERE id = v_webhook.id;
    END IF;
  END LOOP;
END $$;

-- Records an attempt. p_outcome is succeeded, failed or gone (the receiver wants no more deliveries). Without p_pause_seconds
-- a failure was the last attempt. A webhook that fails waits as long as it has failed, from 5 seconds to an hour, with all of
-- its deliveries. It is turned off when it is gone, or when a delivery was given up and none has
-- succeeded for p_failing_seconds. No row, and nothing recorded, when the webhook was claimed again or removed meanwhile.
CREATE OR REPLACE FUNCTION webhook_record(
  p_delivery_id text, p_claim uuid, p_outcome text, p_status integer, p_error text, p_duration_ms integer,
  p_pause_seconds double precision, p_failing_seconds double precision
) RETURNS TABLE (disabled text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz;
  v_rested_until timestamptz;
  v_webhook webhooks;
  v_again boolean := p_outcome = 'failed' AND p_pause_seconds IS NOT NULL;
BEGIN
  SELECT * INTO v_webhook FROM webhooks
    WHERE id = (SELECT webhook_id FROM webhook_deliveries WHERE id = p_delivery_id) AND claim = p_claim
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  v_now := clock_now();
  UPDATE webhook_deliveries
    SET state = CASE WHEN v_again THEN 'pending' WHEN p_outcome = 'succeeded' THEN 'succeeded' ELSE 'failed' END,
        next_attempt_at = CASE WHEN v_again THEN v_now + make_interval(secs => p_pause_seconds) END,
        attempts = attempts + 1, last_attempt_at = v_now, response_status = p_status, error = p_error,
        duration_ms = p_duration_ms
    WHERE id = p_delivery_id;
  IF p_outcome = 'gone' THEN
    disabled := 'gone';
  ELSIF p_outcome = 'failed' AND NOT v_again
    AND v_webhook.failing_since <= v_now - make_interval(secs => p_failing_seconds) THEN
    disabled := 'failing';
  END IF;
  v_rested_until := CASE WHEN p_outcome = 'succeeded' THEN v_now ELSE v_now
    + greatest(interval '5 seconds', least(v_now - coalesce(v_webhook.failing_since, v_now), interval '1 hour')) END;
  UPDATE webhooks
    SET claim = NULL, disabled_reason = disabled, healthy = p_outcome = 'succeeded',
        claimed_until = v_rested_until, rested_until = v_rested_until,
        disabled_at = CASE WHEN disabled IS NOT NULL THEN v_now END,
        failing_since = CASE WHEN p_outcome <> 'succeeded' THEN coalesce(failing_since, v_now) END
    WHERE id = v_webhook.id;
  IF disabled IS NOT NULL THEN
    UPDATE webhook_deliveries
      SET state = 'failed', next_attempt_at = NULL, error = 'The webhook was turned off.'
      WHERE webhook_id = v_webhook.id AND next_attempt_at IS NOT NULL;
  END IF;
  RETURN NEXT;
END $$;

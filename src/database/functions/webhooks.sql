-- Webhooks and their deliveries. A delivery that waits has a next_attempt_at; the due_at of its webhook is when the next one is due
-- and the pause after a failure has ended. A process that is sending one has claimed its webhook until the end of a lease, so that a
-- process that was killed delays a delivery and never loses it. Every function locks the webhook before it looks at its deliveries,
-- in a later statement.

DROP FUNCTION IF EXISTS webhook_create(text, text, text, text[], bytea, integer);
DROP FUNCTION IF EXISTS webhook_claim(uuid, boolean, integer, integer, double precision);
DROP FUNCTION IF EXISTS webhook_enqueue(text, text, jsonb);
DROP VIEW IF EXISTS webhook_queues;

-- Whether a webhook is sent events of this type with these labels.
CREATE OR REPLACE FUNCTION webhook_wants(p_webhook webhooks, p_type text, p_data jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_webhook.events IS NULL OR p_type = ANY (p_webhook.events))
    AND (p_webhook.labels = '{}' OR coalesce(p_data->'labels' @> p_webhook.labels, false))
$$;

-- The ID of an event, which its receivers handle once. An upload of a subscription becomes final once, also when it is sent
-- again by a replay or after a backup was restored.
CREATE OR REPLACE FUNCTION webhook_event_id(p_type text, p_data jsonb) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT 'msg_' || CASE WHEN p_type LIKE 'upload.%'
    THEN left(encode(sha256(convert_to(concat_ws(' ', p_type, p_data->>'subscriptionId', p_data->>'videoId'), 'UTF8')), 'hex'), 32)
    ELSE replace(gen_random_uuid()::text, '-', '') END
$$;

-- The type of the event of an upload.
CREATE OR REPLACE FUNCTION webhook_upload_type(p_event jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_event->>'code' IS NULL THEN 'upload.ready' ELSE 'upload.failed' END
$$;

-- When a webhook is due. Its pause is an hour at most. A replay goes on as long as fewer than 500 deliveries wait, so that it leaves room for new events.
CREATE OR REPLACE FUNCTION webhook_due_at(p_webhook_id text, p_replay_after bigint, p_rested_until timestamptz)
RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT greatest(first_at, CASE WHEN p_rested_until <= clock_now() + interval '1 hour' THEN p_rested_until END) FROM (
    (SELECT next_attempt_at AS first_at FROM webhook_deliveries
       WHERE webhook_id = p_webhook_id AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1)
    UNION ALL
    SELECT clock_now() WHERE p_replay_after IS NOT NULL AND 500 > (
      SELECT count(*) FROM (
        SELECT FROM webhook_deliveries WHERE webhook_id = p_webhook_id AND next_attempt_at IS NOT NULL LIMIT 500) waiting)
  ) what_waits ORDER BY first_at LIMIT 1
$$;

-- The new webhook, or the one that has its ID: that of a request which is repeated with its idempotency key. No row when the
-- organization has p_webhooks_max already. It is locked before they are counted.
CREATE OR REPLACE FUNCTION webhook_create(
  p_id text, p_organization_id text, p_url text, p_events text[], p_labels jsonb, p_authorization_header bytea, p_secret bytea,
  p_request_mac bytea, p_webhooks_max integer
) RETURNS SETOF webhooks LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM organization_lock(p_organization_id);
  RETURN QUERY SELECT * FROM webhooks WHERE id = p_id AND organization_id = p_organization_id;
  IF FOUND THEN
    RETURN;
  END IF;
  RETURN QUERY INSERT INTO webhooks
      (id, organization_id, url, events, labels, authorization_header, secret, request_mac, created_at)
    SELECT p_id, p_organization_id, p_url, p_events, p_labels, p_authorization_header, p_secret, p_request_mac, clock_now()
      WHERE (SELECT count(*) FROM webhooks WHERE organization_id = p_organization_id) < p_webhooks_max
    RETURNING *;
END $$;

-- Changes what p_changes has: url, events, labels, and authorization, whose value is p_authorization_header. Another receiver may be at
-- the URL, so the webhook is turned on and its failures are forgotten. An attempt at the former URL counts until its lease ends and
-- records nothing.
CREATE OR REPLACE FUNCTION webhook_change(p_id text, p_organization_id text, p_changes jsonb, p_authorization_header bytea)
RETURNS TABLE (former webhooks, webhook webhooks) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  SELECT * INTO former FROM webhooks WHERE id = p_id AND organization_id = p_organization_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  webhook := former;
  IF p_changes ? 'events' THEN
    webhook.events := (SELECT array_agg(event) FROM jsonb_array_elements_text(nullif(p_changes->'events', 'null')) event);
  END IF;
  webhook.labels := coalesce(p_changes->'labels', former.labels);
  IF p_changes ? 'authorization' THEN
    webhook.authorization_header := p_authorization_header;
  END IF;
  IF p_changes ? 'url' THEN
    webhook.url := p_changes->>'url';
    webhook.confirmed := former.confirmed AND webhook.url = former.url;
    webhook.claim := CASE WHEN former.claim IS NOT NULL THEN gen_random_uuid() END;
    webhook.healthy := false;
    webhook.rested_until := NULL;
    webhook.failing_since := NULL;
    webhook.disabled_at := NULL;
    webhook.disabled_reason := NULL;
    webhook.due_at := webhook_due_at(p_id, former.replay_after, NULL);
  END IF;
  UPDATE webhooks SET events = webhook.events, labels = webhook.labels, authorization_header = webhook.authorization_header,
      url = webhook.url, confirmed = webhook.confirmed, claim = webhook.claim, healthy = webhook.healthy,
      rested_until = webhook.rested_until, failing_since = webhook.failing_since, disabled_at = webhook.disabled_at,
      disabled_reason = webhook.disabled_reason, due_at = webhook.due_at
    WHERE id = p_id RETURNING * INTO webhook;
  RETURN NEXT;
END $$;

-- Deletes a webhook with its deliveries; a row when there was one. The caller has removed most of them before, in statements of
-- their own: webhook_enqueue waits for the lock of this one.
CREATE OR REPLACE FUNCTION webhook_delete(p_id text, p_organization_id text) RETURNS SETOF webhooks
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM webhooks WHERE id = p_id AND organization_id = p_organization_id FOR NO KEY UPDATE;
  IF FOUND THEN
    DELETE FROM webhook_deliveries WHERE webhook_id = p_id;
    RETURN QUERY DELETE FROM webhooks WHERE id = p_id RETURNING *;
  END IF;
END $$;

-- Stores an event for the webhooks of an organization that want it. All of them are locked, always in the same order. Beyond 1,000
-- waiting deliveries events are counted and not sent: to fail an older one instead would wait for the process that sends it. One an
-- hour is stored, as a failed delivery. A replay that has not reached the end of the log will send the entry of an upload itself.
CREATE OR REPLACE FUNCTION webhook_enqueue(
  p_organization_id text, p_type text, p_data jsonb, p_occurred_at timestamptz DEFAULT NULL
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_event_id text := webhook_event_id(p_type, p_data);
  v_webhook webhooks;
  -- Null while the queue has room.
  v_full text;
BEGIN
  FOR v_webhook IN SELECT * FROM webhooks WHERE organization_id = p_organization_id ORDER BY id FOR NO KEY UPDATE LOOP
    CONTINUE WHEN v_webhook.disabled_at IS NOT NULL OR NOT webhook_wants(v_webhook, p_type, p_data)
      OR v_webhook.replay_after IS NOT NULL AND p_type LIKE 'upload.%';
    SELECT CASE WHEN count(*) >= 1000 THEN 'The webhook has 1000 waiting deliveries.' END INTO v_full FROM (
      SELECT FROM webhook_deliveries WHERE webhook_id = v_webhook.id AND next_attempt_at IS NOT NULL LIMIT 1000
    ) waiting;
    IF v_full IS NOT NULL THEN
      PERFORM nextval('webhook_events_dropped');
      CONTINUE WHEN EXISTS (
        SELECT FROM webhook_deliveries
          WHERE webhook_id = v_webhook.id AND created_at > v_now - interval '1 hour' AND error = v_full
      );
    END IF;
    INSERT INTO webhook_deliveries (webhook_id, event_id, type, data, occurred_at, created_at, state, next_attempt_at, error)
      VALUES (v_webhook.id, v_event_id, p_type, p_data, p_occurred_at, v_now, CASE WHEN v_full IS NULL THEN 'pending' ELSE 'failed' END,
              CASE WHEN v_full IS NULL THEN v_now END, v_full);
    IF v_full IS NULL AND NOT coalesce(v_webhook.due_at <= v_now, false) THEN
      UPDATE webhooks SET due_at = webhook_due_at(id, replay_after, rested_until) WHERE id = v_webhook.id;
    END IF;
  END LOOP;
END $$;

-- The delivery of a webhook that is sent next: the one that was tried most, then is due longest. The longest pause is shorter than
-- ten hours.
CREATE OR REPLACE FUNCTION webhook_next_delivery(p_webhook_id text) RETURNS SETOF webhook_deliveries LANGUAGE sql VOLATILE AS $$
  SELECT * FROM webhook_deliveries
    WHERE webhook_id = p_webhook_id AND next_attempt_at IS NOT NULL AND is_due(next_attempt_at, interval '10 hours')
    ORDER BY attempts DESC, next_attempt_at LIMIT 1
$$;

-- Stores the next deliveries of a replay: of up to 1,000 entries of the log, the first 100 that the webhook wants. It is locked, and
-- every entry whose event has seen the replay is committed. Returns after which entry it goes on; null at the end of the log.
CREATE OR REPLACE FUNCTION webhook_replay_batch(p_webhook webhooks) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
  v_read record;
BEGIN
  WITH page AS MATERIALIZED (
    SELECT * FROM log_entries WHERE organization_id = p_webhook.organization_id AND sequence > p_webhook.replay_after
      ORDER BY sequence LIMIT 1000
  ), wanted AS MATERIALIZED (
    SELECT page.sequence, type, page.event, decided_at, row_number() OVER (ORDER BY page.sequence) AS place
      FROM page JOIN job_videos video USING (job_id, position) JOIN jobs ON jobs.id = page.job_id,
        webhook_upload_type(page.event) type
      WHERE video.sequence IS NOT NULL AND deleted_at IS NULL AND page.event IS NOT NULL AND webhook_wants(p_webhook, type, page.event)
      ORDER BY page.sequence LIMIT 100
  ), stored AS (
    INSERT INTO webhook_deliveries (webhook_id, event_id, type, data, occurred_at, created_at, next_attempt_at)
      SELECT p_webhook.id, webhook_event_id(type, event), type, event, decided_at, v_now,
             -- In their order, and due at once.
             v_now - (100 - place) * interval '1 microsecond'
        FROM wanted ORDER BY place
  )
  SELECT CASE WHEN (SELECT count(*) FROM wanted) = 100 THEN (SELECT max(sequence) FROM wanted)
              ELSE (SELECT max(sequence) FROM page) END AS sequence
    INTO v_read;
  RETURN v_read.sequence;
END $$;

-- Claims webhooks that are due, and returns the next delivery of each. A webhook has one delivery at a time, an organization
-- p_organization_max, counted apart for healthy webhooks and others, and a host to which no delivery has ever succeeded 10, of all
-- organizations. The organizations take turns, then the webhooks, the one that is due longest first.
--
-- The first 100 that are due are looked at. When more are, those that have to wait make room for them: for a second, or, where
-- the host has its 10, for up to five minutes.
CREATE OR REPLACE FUNCTION webhook_claim(
  p_claim uuid, p_healthy boolean, p_webhooks_max integer, p_organization_max integer, p_lease_seconds double precision
) RETURNS TABLE (
  delivery_id text, event_id text, webhook_id text, organization_id text, url text, authorization_header bytea, type text, data text,
  occurred_at timestamptz, attempts integer, secret bytea, previous_secret bytea
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_now();
  v_lease interval := make_interval(secs => p_lease_seconds);
  v_free integer := p_webhooks_max;
  v_due record;
  v_webhook webhooks;
  v_delivery webhook_deliveries;
BEGIN
  -- What is being sent to a host is counted by one process at a time.
  IF NOT p_healthy THEN
    PERFORM pg_advisory_xact_lock('webhooks'::regclass::oid::bigint);
  END IF;
  FOR round IN 1..10 LOOP
    WITH due AS MATERIALIZED (
      (SELECT id, organization_id, host, due_at FROM webhooks
         WHERE healthy = p_healthy AND claim IS NULL AND due_at <= v_now ORDER BY due_at LIMIT 100)
      UNION ALL
      (SELECT id, organization_id, host, due_at FROM webhooks
         WHERE healthy = p_healthy AND claim IS NULL AND due_at > v_now + interval '10 hours' ORDER BY due_at LIMIT 100)
      UNION ALL
      (SELECT id, organization_id, host, due_at FROM webhooks
         WHERE healthy = p_healthy AND claim IS NOT NULL AND due_at IS NOT NULL AND is_due(claimed_until, v_lease) LIMIT 100)
    ), sending AS MATERIALIZED (
      SELECT organization_id, host, healthy FROM webhooks WHERE claim IS NOT NULL AND NOT is_due(claimed_until, v_lease)
    ), in_turn AS MATERIALIZED (
      SELECT *, row_number() OVER (PARTITION BY organization_id ORDER BY due_at, id) + (
          SELECT count(*) FROM sending WHERE organization_id = due.organization_id AND healthy = p_healthy) AS turn
        FROM due
    ), of_hosts AS MATERIALIZED (
      SELECT *, row_number() OVER (PARTITION BY host ORDER BY turn, due_at, id) + (
          SELECT count(*) FROM sending WHERE host = in_turn.host) AS host_turn
        FROM in_turn WHERE turn <= p_organization_max
    ), sendable AS MATERIALIZED (
      SELECT * FROM of_hosts WHERE host_turn <= 10 OR EXISTS (SELECT FROM webhooks WHERE host = of_hosts.host AND confirmed)
    )
    SELECT (SELECT array_agg(id ORDER BY turn, due_at) FROM sendable) AS sendable,
           (SELECT array_agg(id) FROM due WHERE id NOT IN (SELECT id FROM sendable)) AS waiting,
           (SELECT array_agg(id) FROM of_hosts) AS of_hosts, (SELECT count(*) FROM due) >= 100 AS are_more
      INTO v_due;
    FOR v_webhook IN
      SELECT * FROM webhooks
        WHERE id = ANY (v_due.sendable[:v_free]) AND is_due(due_at, interval '10 hours')
          AND (claim IS NULL OR is_due(claimed_until, v_lease))
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
      -- Until it is removed.
      IF EXISTS (SELECT FROM organizations WHERE id = v_webhook.organization_id AND deleted_at IS NOT NULL) THEN
        UPDATE webhooks SET due_at = NULL WHERE id = v_webhook.id;
        CONTINUE;
      END IF;
      SELECT * INTO v_delivery FROM webhook_next_delivery(v_webhook.id);
      IF NOT FOUND AND v_webhook.replay_after IS NOT NULL THEN
        v_webhook.replay_after := webhook_replay_batch(v_webhook);
        SELECT * INTO v_delivery FROM webhook_next_delivery(v_webhook.id);
      END IF;
      IF v_delivery.id IS NULL THEN
        UPDATE webhooks SET claim = NULL, claimed_until = NULL, replay_after = v_webhook.replay_after,
            due_at = webhook_due_at(id, v_webhook.replay_after, rested_until)
          WHERE id = v_webhook.id;
        CONTINUE;
      END IF;
      UPDATE webhooks SET claim = p_claim, claimed_until = v_now + v_lease, replay_after = v_webhook.replay_after
        WHERE id = v_webhook.id;
      v_free := v_free - 1;
      RETURN QUERY SELECT v_delivery.id, coalesce(v_delivery.event_id, v_delivery.id), v_webhook.id, v_webhook.organization_id,
        v_webhook.url, v_webhook.authorization_header, v_delivery.type, v_delivery.data::text,
        coalesce(v_delivery.occurred_at, v_delivery.created_at), v_delivery.attempts, v_webhook.secret,
        CASE WHEN v_webhook.previous_secret_until > v_now THEN v_webhook.previous_secret END;
    END LOOP;
    EXIT WHEN v_free <= 0 OR NOT v_due.are_more;
    UPDATE webhooks SET due_at = v_now + CASE WHEN id = ANY (v_due.of_hosts) THEN random() * interval '5 minutes'
                                              ELSE interval '1 second' END
      WHERE id IN (SELECT id FROM webhooks WHERE id = ANY (v_due.waiting) AND claim IS NULL FOR NO KEY UPDATE SKIP LOCKED);
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
  IF disabled IS NOT NULL THEN
    UPDATE webhook_deliveries
      SET state = 'failed', next_attempt_at = NULL, error = 'The webhook was turned off.'
      WHERE webhook_id = v_webhook.id AND next_attempt_at IS NOT NULL;
    v_webhook.replay_after := NULL;
  END IF;
  v_rested_until := CASE WHEN p_outcome = 'succeeded' THEN v_now ELSE v_now
    + greatest(interval '5 seconds', least(v_now - coalesce(v_webhook.failing_since, v_now), interval '1 hour')) END;
  UPDATE webhooks
    SET claim = NULL, claimed_until = NULL, disabled_reason = disabled, healthy = p_outcome = 'succeeded',
        confirmed = confirmed OR p_outcome = 'succeeded', rested_until = v_rested_until, replay_after = v_webhook.replay_after,
        due_at = webhook_due_at(id, v_webhook.replay_after, v_rested_until),
        disabled_at = CASE WHEN disabled IS NOT NULL THEN v_now END,
        failing_since = CASE WHEN p_outcome <> 'succeeded' THEN coalesce(failing_since, v_now) END
    WHERE id = v_webhook.id;
  RETURN NEXT;
END $$;

-- Sends a delivery that has ended again, and returns it as it waits then, or says in one word why not.
CREATE OR REPLACE FUNCTION webhook_retry(
  p_id text, p_organization_id text, p_delivery_id text, OUT refusal text, OUT delivery webhook_deliveries
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_webhook webhooks;
BEGIN
  SELECT * INTO v_webhook FROM webhooks WHERE id = p_id AND organization_id = p_organization_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    refusal := 'no_webhook';
    RETURN;
  END IF;
  SELECT * INTO delivery FROM webhook_deliveries WHERE id = p_delivery_id AND webhook_id = p_id;
  refusal := CASE
    WHEN NOT FOUND THEN 'no_delivery'
    WHEN v_webhook.disabled_at IS NOT NULL THEN 'turned_off'
    WHEN delivery.state = 'pending' THEN 'waiting'
    WHEN 1000 <= (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = p_id AND next_attempt_at IS NOT NULL) THEN 'full'
  END;
  IF refusal IS NULL THEN
    UPDATE webhook_deliveries SET state = 'pending', attempts = 0, next_attempt_at = clock_now(), response_status = NULL, error = NULL
      WHERE id = p_delivery_id RETURNING * INTO delivery;
    UPDATE webhooks SET due_at = webhook_due_at(id, replay_after, rested_until) WHERE id = p_id;
  END IF;
END $$;

-- Sends the entries of the organization's log after p_after again. Those that a replay has not reached yet stay before it. No row
-- when there is no such webhook; nothing is sent to one that is turned off.
CREATE OR REPLACE FUNCTION webhook_replay(p_id text, p_organization_id text, p_after bigint) RETURNS SETOF webhooks
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM webhooks WHERE id = p_id AND organization_id = p_organization_id FOR NO KEY UPDATE;
  UPDATE webhooks SET replay_after = least(replay_after, p_after), due_at = webhook_due_at(id, p_after, rested_until)
    WHERE id = p_id AND organization_id = p_organization_id AND disabled_at IS NULL;
  RETURN QUERY SELECT * FROM webhooks WHERE id = p_id AND organization_id = p_organization_id;
END $$;

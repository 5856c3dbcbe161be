-- The quota: a book of reservations, and the functions that reserve, settle, cancel and prune.
--
-- Each function is one transaction. The organization's row is locked first and everything is summed in later statements: a
-- volatile function takes a new snapshot for each of its statements under READ COMMITTED, so the sums see all that was
-- committed while it waited. Changes of plan and limit take the same lock.

CREATE OR REPLACE FUNCTION quota_period(p_at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
  SELECT date_trunc('month', p_at AT TIME ZONE 'UTC')::date
$$;

CREATE OR REPLACE FUNCTION quota_period_end(p_period_start date) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_period_start + interval '1 month') AT TIME ZONE 'UTC'
$$;

-- The limit in force. Null for an unknown plan: nothing compares below null, so such an organization is granted nothing.
CREATE OR REPLACE FUNCTION quota_limit(p_own integer, p_plan text, p_free_limit integer, p_pro_limit integer) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(p_own, CASE p_plan WHEN 'free' THEN p_free_limit WHEN 'pro' THEN p_pro_limit END)
$$;

-- Sums what a locked organization has used and reserved. A reservation whose lease has expired is no longer open, because
-- its room may be given away from then on: should the clock step back (a failover), it must not come to life again.
CREATE OR REPLACE FUNCTION quota_tally(
  p_organization_id text, p_period_start date, p_now timestamptz, OUT used_count bigint, OUT reserved_count bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  DELETE FROM quota_open_reservations WHERE organization_id = p_organization_id AND leased_until <= p_now;
  SELECT coalesce(sum(required), 0) INTO reserved_count FROM quota_open_reservations
    WHERE organization_id = p_organization_id AND period_start = p_period_start;
  SELECT coalesce(sum(used), 0) INTO used_count FROM quota_periods
    WHERE organization_id = p_organization_id AND period_start = p_period_start;
END $$;

-- Sums what a key with a limit, and those that it was rotated from, have used and reserved; quota_tally must come before. All
-- is null for a key without a limit.
CREATE OR REPLACE FUNCTION quota_key_tally(
  p_key_id text, p_period_start date,
  OUT quota_key_id text, OUT key_limit integer, OUT used_count bigint, OUT reserved_count bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  SELECT key.quota_key_id, key.monthly_limit,
         coalesce((SELECT used FROM quota_key_periods period WHERE period.organization_id = key.organization_id
           AND period.period_start = p_period_start AND period.quota_key_id = key.quota_key_id), 0),
         (SELECT coalesce(sum(required), 0) FROM quota_open_reservations open WHERE open.organization_id = key.organization_id
           AND open.period_start = p_period_start AND open.quota_key_id = key.quota_key_id)
    INTO quota_key_id, key_limit, used_count, reserved_count
    FROM api_keys key WHERE key.id = p_key_id AND key.quota_key_id IS NOT NULL;
END $$;

-- Reserves quota, of which p_reservation has the columns, or refuses with a null reservation_id. The service chooses the id,
-- so that it can cancel a reservation without having seen the response; an id that was used, also for a cancellation, reserves
-- nothing. The last three results are null for a key without a limit. No row for an unknown or deleted organization.
CREATE OR REPLACE FUNCTION quota_reserve_within(
  p_reservation json, p_lease_seconds double precision, p_free_limit integer, p_pro_limit integer
) RETURNS TABLE (
  reservation_id uuid, limit_in_force integer, used_count integer, reserved_count integer, period_end timestamptz,
  decided_at timestamptz, key_limit integer, key_used_count integer, key_reserved_count integer
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_new quota_reservations := json_populate_record(NULL::quota_reservations, p_reservation);
  v_organization organizations := organization_lock(v_new.organization_id);
  v_now timestamptz := clock_now();
  v_leased_until timestamptz := v_now + make_interval(secs => p_lease_seconds);
  v_period_start date := quota_period(v_now);
  v_tally record;
  v_key record;
BEGIN
  IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
    RETURN;
  END IF;
  limit_in_force := quota_limit(v_organization.monthly_limit, v_organization.plan, p_free_limit, p_pro_limit);
  SELECT * INTO v_tally FROM quota_tally(v_new.organization_id, v_period_start, v_now);
  used_count := v_tally.used_count;
  reserved_count := v_tally.reserved_count;
  period_end := quota_period_end(v_period_start);
  decided_at := v_now;
  SELECT * INTO v_key FROM quota_key_tally(v_new.key_id, v_period_start);
  key_limit := v_key.key_limit;
  key_used_count := v_key.used_count;
  key_reserved_count := v_key.reserved_count;
  IF used_count::bigint + reserved_count + v_new.required <= limit_in_force
      AND (key_limit IS NULL OR key_used_count::bigint + key_reserved_count + v_new.required <= key_limit)
      AND NOT EXISTS (SELECT FROM quota_reservations WHERE id = v_new.id) THEN
    INSERT INTO quota_reservations
      (id, organization_id, key_id, request_id, channel_id, period_start, required, created_at, leased_until)
      VALUES (v_new.id, v_new.organization_id, v_new.key_id, v_new.request_id, v_new.channel_id, v_period_start,
              v_new.required, v_now, v_leased_until);
    INSERT INTO quota_open_reservations
      (organization_id, reservation_id, period_start, required, leased_until, quota_key_id)
      VALUES (v_new.organization_id, v_new.id, v_period_start, v_new.required, v_leased_until, v_key.quota_key_id);
    reservation_id := v_new.id;
    reserved_count := reserved_count + v_new.required;
    key_reserved_count := key_reserved_count + v_new.required;
  END IF;
  RETURN NEXT;
END $$;

-- Cancels a reservation, or leaves a row that a reservation which comes later finds, and then reserves nothing.
CREATE OR REPLACE FUNCTION quota_cancel(p_reservation json) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_new quota_reservations := json_populate_record(NULL::quota_reservations, p_reservation);
  v_organization organizations := organization_lock(v_new.organization_id);
  v_now timestamptz := clock_now();
BEGIN
  IF v_organization.id IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO quota_reservations AS reservation
    (id, organization_id, key_id, request_id, channel_id, period_start, required, created_at, leased_until, settled_at,
     fetched)
    VALUES (v_new.id, v_new.organization_id, v_new.key_id, v_new.request_id, v_new.channel_id, quota_period(v_now), 0,
            v_now, v_now, v_now, 0)
    ON CONFLICT (id) DO UPDATE SET settled_at = v_now, fetched = 0 WHERE reservation.settled_at IS NULL;
  DELETE FROM quota_open_reservations WHERE organization_id = v_new.organization_id AND reservation_id = v_new.id;
END $$;

-- Charges what was fetched and releases the rest. After the lease it charges what still fits under the limits. Only the
-- first settlement counts; a repetition returns its counts. No row for an unknown reservation. The reservation is locked
-- as well, because pruning does not lock the organization.
CREATE OR REPLACE FUNCTION quota_settle(
  p_reservation_id uuid, p_fetched integer, p_free_limit integer, p_pro_limit integer
) RETURNS TABLE (first boolean, charged_count integer, forfeited_count integer) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations;
  v_reservation quota_reservations;
  v_now timestamptz;
  v_limit integer;
  v_quota_key_id text;
  v_period quota_periods;
BEGIN
  v_organization := organization_lock((SELECT organization_id FROM quota_reservations WHERE id = p_reservation_id));
  SELECT * INTO v_reservation FROM quota_reservations WHERE id = p_reservation_id FOR UPDATE;
  IF v_reservation.id IS NULL THEN
    RETURN;
  ELSIF v_reservation.settled_at IS NOT NULL THEN
    RETURN QUERY SELECT false, v_reservation.charged, v_reservation.forfeited;
    RETURN;
  END IF;
  v_now := clock_now();
  v_limit := quota_limit(v_organization.monthly_limit, v_organization.plan, p_free_limit, p_pro_limit);
  charged_count := least(p_fetched, v_reservation.required);
  DELETE FROM quota_open_reservations WHERE organization_id = v_organization.id AND reservation_id = p_reservation_id
    RETURNING quota_key_id INTO v_quota_key_id;
  IF NOT FOUND OR v_reservation.leased_until <= v_now THEN
    SELECT quota_key_id INTO v_quota_key_id FROM api_keys WHERE id = v_reservation.key_id;
    charged_count := least(charged_count, quota_room(v_reservation, v_now, v_limit));
  END IF;
  first := true;
  forfeited_count := p_fetched - charged_count;
  UPDATE quota_reservations SET settled_at = v_now, fetched = p_fetched, forfeited = forfeited_count
    WHERE id = p_reservation_id;
  INSERT INTO quota_periods AS period (organization_id, period_start, used)
    VALUES (v_organization.id, v_reservation.period_start, charged_count)
    ON CONFLICT (organization_id, period_start) DO UPDATE SET used = period.used + excluded.used
    RETURNING * INTO v_period;
  IF v_quota_key_id IS NOT NULL THEN
    INSERT INTO quota_key_periods AS period (organization_id, period_start, quota_key_id, used)
      VALUES (v_organization.id, v_reservation.period_start, v_quota_key_id, charged_count)
      ON CONFLICT (organization_id, period_start, quota_key_id) DO UPDATE SET used = period.used + excluded.used;
  END IF;
  IF charged_count > 0 AND v_limit > 0 AND v_period.announced_threshold < 100 AND v_period.used::bigint * 100
      >= v_limit::bigint * (CASE WHEN v_period.announced_threshold < 80 THEN 80 ELSE 100 END) THEN
    PERFORM quota_announce(v_period, v_limit);
  END IF;
  RETURN NEXT;
END $$;

-- What a settlement that comes after its lease may still charge: what is left under the limit and under that of the key.
CREATE OR REPLACE FUNCTION quota_room(
  p_reservation quota_reservations, p_now timestamptz, p_limit integer
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_tally record;
  v_room bigint;
BEGIN
  SELECT * INTO v_tally FROM quota_tally(p_reservation.organization_id, p_reservation.period_start, p_now);
  v_room := coalesce(p_limit - v_tally.used_count - v_tally.reserved_count, 0);
  SELECT * INTO v_tally FROM quota_key_tally(p_reservation.key_id, p_reservation.period_start);
  -- LEAST ignores what is null.
  RETURN greatest(least(v_room, v_tally.key_limit - v_tally.used_count - v_tally.reserved_count), 0);
END $$;

-- Stores the event of each threshold that a month's use has reached and that was not announced in this month yet, in the
-- transaction of the settlement that reached it. The organization is locked.
CREATE OR REPLACE FUNCTION quota_announce(p_period quota_periods, p_limit integer) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_threshold integer;
BEGIN
  FOREACH v_threshold IN ARRAY ARRAY[80, 100] LOOP
    CONTINUE WHEN v_threshold <= p_period.announced_threshold
      OR p_period.used::bigint * 100 < p_limit::bigint * v_threshold;
    UPDATE quota_periods SET announced_threshold = v_threshold
      WHERE organization_id = p_period.organization_id AND period_start = p_period.period_start;
    PERFORM webhook_enqueue(p_period.organization_id, 'quota.threshold', jsonb_build_object(
      'threshold', v_threshold, 'used', p_period.used, 'limit', p_limit,
      'period', to_char(p_period.period_start, 'YYYY-MM')));
  END LOOP;
END $$;

-- Whether a key has used up the limit of its own. What is reserved does not count: it may be released.
CREATE OR REPLACE FUNCTION quota_key_is_exhausted(p_key_id text, p_now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM api_keys key
      LEFT JOIN quota_key_periods period ON period.organization_id = key.organization_id
        AND period.period_start = quota_period(p_now) AND period.quota_key_id = key.quota_key_id
      WHERE key.id = p_key_id AND coalesce(period.used, 0) >= key.monthly_limit)
$$;

-- Removes some calls of an organization's old months, without its lock. What they were charged is taken from the counts of
-- the months, so that the two agree before and after; both lock calls first and the counts after, as settlements do. A call
-- whose lease still lives stays, and can still be settled.
CREATE OR REPLACE FUNCTION quota_prune_batch(
  p_organization_id text, p_before date, p_calls_max integer, OUT periods integer, OUT calls integer
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := clock_now();
BEGIN
  WITH old AS MATERIALIZED (
    SELECT id FROM quota_reservations
      WHERE organization_id = p_organization_id AND (created_at AT TIME ZONE 'UTC')::date < p_before
        AND (settled_at IS NOT NULL OR leased_until <= v_now)
      LIMIT p_calls_max FOR UPDATE SKIP LOCKED
  ), removed AS (
    DELETE FROM quota_reservations reservation USING old WHERE reservation.id = old.id
      RETURNING reservation.period_start, reservation.charged, reservation.key_id
  ), unsettled AS (
    DELETE FROM quota_open_reservations open USING old
      WHERE open.organization_id = p_organization_id AND open.reservation_id = old.id
  ), months AS (
    SELECT period_start, count(*) AS calls, coalesce(sum(charged), 0) AS charged FROM removed GROUP BY period_start
  ), counted AS (
    UPDATE quota_periods period SET used = greatest(0, used - months.charged) FROM months
      WHERE period.organization_id = p_organization_id AND period.period_start = months.period_start AND months.charged > 0
      RETURNING months.period_start
  ), key_months AS (
    SELECT removed.period_start, key.quota_key_id, sum(removed.charged) AS charged
      FROM removed JOIN api_keys key ON key.id = removed.key_id
      WHERE key.quota_key_id IS NOT NULL AND removed.charged > 0 GROUP BY 1, 2
  ), key_counted AS (
    -- After the counts of the organization, which settlements lock first as well.
    UPDATE quota_key_periods period SET used = greatest(0, used - key_months.charged)
      FROM key_months, (SELECT count(*) FROM counted) AS counted_first
      WHERE period.organization_id = p_organization_id AND period.period_start = key_months.period_start
        AND period.quota_key_id = key_months.quota_key_id
  )
  SELECT coalesce(sum(months.calls), 0) INTO calls FROM months;
  DELETE FROM quota_periods period
    WHERE organization_id = p_organization_id AND period_start < p_before AND NOT EXISTS (
      SELECT FROM quota_reservations
        WHERE organization_id = p_organization_id AND (created_at AT TIME ZONE 'UTC')::date
          BETWEEN period.period_start AND (period.period_start + interval '1 month - 1 day')::date);
  GET DIAGNOSTICS periods = ROW_COUNT;
  DELETE FROM quota_key_periods key_period
    WHERE organization_id = p_organization_id AND period_start < p_before AND NOT EXISTS (
      SELECT FROM quota_periods
        WHERE organization_id = p_organization_id AND period_start = key_period.period_start);
END $$;

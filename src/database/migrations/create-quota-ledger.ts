import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Reserving and settling, each one call of a function and so one transaction. The organization's row is locked first
 * and everything is summed in later statements: a volatile function takes a new snapshot for each of its statements
 * under READ COMMITTED, so the sums see all that was committed while it waited. Changes of plan and limit take the same
 * lock.
 */
export class CreateQuotaLedger1763683203000 implements MigrationInterface {
  readonly name = 'CreateQuotaLedger1763683203000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(LOCK);
    await queryRunner.query(TALLY);
    await queryRunner.query(RESERVE);
    await queryRunner.query(SETTLE);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP FUNCTION quota_settle');
    await queryRunner.query('DROP FUNCTION quota_reserve');
    await queryRunner.query('DROP FUNCTION quota_tally');
    await queryRunner.query('DROP FUNCTION quota_lock');
  }
}

// At a higher isolation level every statement would see the snapshot from before the wait, and grant too much.
const LOCK = `
  CREATE FUNCTION quota_lock(p_organization_id text) RETURNS organizations LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_organization organizations;
  BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
      RAISE EXCEPTION 'the quota needs the isolation level READ COMMITTED';
    END IF;
    SELECT * INTO v_organization FROM organizations WHERE id = p_organization_id FOR NO KEY UPDATE;
    RETURN v_organization;
  END $$`;

// A lease that was seen to be over is marked as lapsed, because its room may be given away from then on: should the
// clock step back (a failover), the reservation must not come to life again.
const TALLY = `
  CREATE FUNCTION quota_tally(
    p_organization_id text, p_period_start date, p_now timestamptz, OUT used_count bigint, OUT reserved_count bigint
  ) LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    UPDATE quota_reservations SET lapsed_at = p_now
      WHERE organization_id = p_organization_id AND settled_at IS NULL AND lapsed_at IS NULL AND leased_until <= p_now;
    SELECT coalesce(sum(required), 0) INTO reserved_count FROM quota_reservations
      WHERE organization_id = p_organization_id AND period_start = p_period_start
        AND settled_at IS NULL AND lapsed_at IS NULL;
    SELECT coalesce(sum(used), 0) INTO used_count FROM quota_periods
      WHERE organization_id = p_organization_id AND period_start = p_period_start;
  END $$`;

const RESERVE = `
  CREATE FUNCTION quota_reserve(
    p_organization_id text, p_key_id text, p_request_id text, p_channel_id text, p_required integer,
    p_lease_seconds double precision, p_free_limit integer, p_pro_limit integer
  ) RETURNS TABLE (
    reservation_id uuid, limit_in_force integer, used_count integer, reserved_count integer, period_end timestamptz
  ) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_organization organizations := quota_lock(p_organization_id);
    v_now timestamptz := quota_now();
    v_period_start date := quota_period(v_now);
    v_tally record;
  BEGIN
    IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
      RETURN;
    END IF;
    limit_in_force := quota_limit(v_organization.monthly_limit, v_organization.plan, p_free_limit, p_pro_limit);
    SELECT * INTO v_tally FROM quota_tally(p_organization_id, v_period_start, v_now);
    used_count := v_tally.used_count;
    reserved_count := v_tally.reserved_count;
    period_end := quota_period_end(v_period_start);
    IF p_required = 0 OR v_tally.used_count + v_tally.reserved_count + p_required <= limit_in_force THEN
      INSERT INTO quota_reservations
        (organization_id, key_id, request_id, channel_id, period_start, required, created_at, leased_until)
        VALUES (p_organization_id, p_key_id, p_request_id, p_channel_id, v_period_start, p_required, v_now,
                v_now + make_interval(secs => p_lease_seconds))
        RETURNING id INTO reservation_id;
      reserved_count := reserved_count + p_required;
    END IF;
    RETURN NEXT;
  END $$`;

const SETTLE = `
  CREATE FUNCTION quota_settle(
    p_reservation_id uuid, p_fetched integer, p_free_limit integer, p_pro_limit integer
  ) RETURNS TABLE (first boolean, charged_count integer, forfeited_count integer) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_organization organizations;
    v_reservation quota_reservations;
    v_now timestamptz;
    v_tally record;
    v_room bigint;
  BEGIN
    v_organization := quota_lock((SELECT organization_id FROM quota_reservations WHERE id = p_reservation_id));
    SELECT * INTO v_reservation FROM quota_reservations WHERE id = p_reservation_id;
    IF v_reservation.id IS NULL THEN
      RETURN;
    ELSIF v_reservation.settled_at IS NOT NULL THEN
      RETURN QUERY SELECT false, v_reservation.charged, v_reservation.forfeited;
      RETURN;
    END IF;
    v_now := quota_now();
    charged_count := least(p_fetched, v_reservation.required);
    IF v_reservation.lapsed_at IS NOT NULL OR v_reservation.leased_until <= v_now THEN
      SELECT * INTO v_tally FROM quota_tally(v_organization.id, v_reservation.period_start, v_now);
      v_room := quota_limit(v_organization.monthly_limit, v_organization.plan, p_free_limit, p_pro_limit)
        - v_tally.used_count - v_tally.reserved_count;
      charged_count := least(charged_count, greatest(coalesce(v_room, 0), 0));
    END IF;
    first := true;
    forfeited_count := p_fetched - charged_count;
    UPDATE quota_reservations SET settled_at = v_now, fetched = p_fetched, forfeited = forfeited_count
      WHERE id = p_reservation_id;
    INSERT INTO quota_periods AS period (organization_id, period_start, used)
      VALUES (v_organization.id, v_reservation.period_start, charged_count)
      ON CONFLICT (organization_id, period_start) DO UPDATE SET used = period.used + excluded.used;
    RETURN NEXT;
  END $$`;

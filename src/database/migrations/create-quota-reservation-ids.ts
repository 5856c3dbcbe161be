import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Reservations get their id from the service, which can so cancel one without having seen the answer. Both functions lock
 * the organization first, so one of them is the first: a reservation that comes after its cancellation finds the row that
 * the cancellation has made, and holds nothing. `quota_reserve` remains for processes of the release before.
 */
export class CreateQuotaReservationIds1763683205000 implements MigrationInterface {
  readonly name = 'CreateQuotaReservationIds1763683205000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(RESERVE_AS);
    await queryRunner.query(CANCEL);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP FUNCTION quota_cancel');
    await queryRunner.query('DROP FUNCTION quota_reserve_as');
  }
}

// A connection is not held for a caller who has been refused for long. As quota_reserve; a repetition gives the same reservation again, or none when that has ended.
const RESERVE_AS = `
  CREATE FUNCTION quota_reserve_as(
    p_reservation_id uuid, p_organization_id text, p_key_id text, p_request_id text, p_channel_id text,
    p_required integer, p_lease_seconds double precision, p_free_limit integer, p_pro_limit integer
  ) RETURNS TABLE (
    reservation_id uuid, limit_in_force integer, used_count integer, reserved_count integer, period_end timestamptz,
    decided_at timestamptz
  ) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_organization organizations := quota_lock(p_organization_id);
    v_now timestamptz := quota_now();
    v_period_start date := quota_period(v_now);
    v_tally record;
    v_known quota_reservations;
  BEGIN
    IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
      RETURN;
    END IF;
    limit_in_force := quota_limit(v_organization.monthly_limit, v_organization.plan, p_free_limit, p_pro_limit);
    SELECT * INTO v_tally FROM quota_tally(p_organization_id, v_period_start, v_now);
    used_count := v_tally.used_count;
    reserved_count := v_tally.reserved_count;
    period_end := quota_period_end(v_period_start);
    decided_at := v_now;
    SELECT * INTO v_known FROM quota_reservations WHERE id = p_reservation_id;
    IF v_known.id IS NOT NULL THEN
      IF v_known.settled_at IS NULL AND v_known.lapsed_at IS NULL THEN
        reservation_id := v_known.id;
      END IF;
    ELSIF p_required = 0 OR v_tally.used_count + v_tally.reserved_count + p_required <= limit_in_force THEN
      INSERT INTO quota_reservations
        (id, organization_id, key_id, request_id, channel_id, period_start, required, created_at, leased_until)
        VALUES (p_reservation_id, p_organization_id, p_key_id, p_request_id, p_channel_id, v_period_start, p_required,
                v_now, v_now + make_interval(secs => p_lease_seconds));
      reservation_id := p_reservation_id;
      reserved_count := reserved_count + p_required;
    END IF;
    RETURN NEXT;
  END $$`;

const CANCEL = `
  CREATE FUNCTION quota_cancel(
    p_reservation_id uuid, p_organization_id text, p_key_id text, p_request_id text, p_channel_id text
  ) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_organization organizations := quota_lock(p_organization_id);
    v_now timestamptz := quota_now();
  BEGIN
    IF v_organization.id IS NULL THEN
      RETURN;
    END IF;
    INSERT INTO quota_reservations AS reservation
      (id, organization_id, key_id, request_id, channel_id, period_start, required, created_at, leased_until, settled_at,
       fetched)
      VALUES (p_reservation_id, p_organization_id, p_key_id, p_request_id, p_channel_id, quota_period(v_now), 0, v_now,
              v_now, v_now, 0)
      ON CONFLICT (id) DO UPDATE SET settled_at = v_now, fetched = 0 WHERE reservation.settled_at IS NULL;
  END $$`;

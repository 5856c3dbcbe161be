import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Removes the calls of a month a batch at a time, without the lock of the organization. Each batch takes what its calls
 * were charged from the count of the month, so that the two agree before and after; both lock calls first and the count
 * after, as settlements do. A call whose lease still lives stays, and can still be settled.
 *
 * A settlement now locks its call, because the lock of the organization does not keep a pruning from it any more.
 * `quota_prune` remains for processes of the release before.
 */
export class CreateQuotaPruneBatch1763683206000 implements MigrationInterface {
  readonly name = 'CreateQuotaPruneBatch1763683206000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(settle('FOR UPDATE'));
    await queryRunner.query(PRUNE_BATCH);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP FUNCTION quota_prune_batch');
    await queryRunner.query(settle(''));
  }
}

const PRUNE_BATCH = `
  CREATE FUNCTION quota_prune_batch(
    p_organization_id text, p_period_start date, p_calls_max integer, OUT periods integer, OUT calls integer
  ) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_charged bigint;
  BEGIN
    WITH old AS MATERIALIZED (
      SELECT id FROM quota_reservations
        WHERE organization_id = p_organization_id AND period_start = p_period_start
          AND (settled_at IS NOT NULL OR lapsed_at IS NOT NULL OR leased_until <= quota_now())
        LIMIT p_calls_max FOR UPDATE SKIP LOCKED
    ), removed AS (
      DELETE FROM quota_reservations reservation USING old WHERE reservation.id = old.id RETURNING reservation.charged
    )
    SELECT count(*), coalesce(sum(charged), 0) INTO calls, v_charged FROM removed;
    UPDATE quota_periods SET used = greatest(0, used - v_charged)
      WHERE organization_id = p_organization_id AND period_start = p_period_start AND v_charged > 0;
    periods := 0;
    IF calls < p_calls_max THEN
      DELETE FROM quota_periods
        WHERE organization_id = p_organization_id AND period_start = p_period_start AND NOT EXISTS (
          SELECT FROM quota_reservations WHERE organization_id = p_organization_id AND period_start = p_period_start);
      GET DIAGNOSTICS periods = ROW_COUNT;
    END IF;
  END $$`;

// As in CreateQuotaLedger, but for the lock of the call.
const settle = (lock: string): string => `
  CREATE OR REPLACE FUNCTION quota_settle(
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
    SELECT * INTO v_reservation FROM quota_reservations WHERE id = p_reservation_id ${lock};
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

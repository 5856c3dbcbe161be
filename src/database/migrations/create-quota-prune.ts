import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Removes one month of an organization: its count and its calls together, under the lock that settlements take, so that
 * the count and the sum of the calls agree before and after. A call whose lease still lives stays, and can still be settled.
 */
export class CreateQuotaPrune1763683204000 implements MigrationInterface {
  readonly name = 'CreateQuotaPrune1763683204000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE FUNCTION quota_prune(
        p_organization_id text, p_period_start date, OUT periods integer, OUT calls integer
      ) LANGUAGE plpgsql VOLATILE AS $$
      BEGIN
        PERFORM quota_lock(p_organization_id);
        DELETE FROM quota_reservations
          WHERE organization_id = p_organization_id AND period_start = p_period_start
            AND (settled_at IS NOT NULL OR lapsed_at IS NOT NULL OR leased_until <= quota_now());
        GET DIAGNOSTICS calls = ROW_COUNT;
        DELETE FROM quota_periods WHERE organization_id = p_organization_id AND period_start = p_period_start;
        GET DIAGNOSTICS periods = ROW_COUNT;
      END $$`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP FUNCTION quota_prune');
  }
}

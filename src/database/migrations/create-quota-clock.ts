import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The pure parts of the quota: what time it is, which month that is, and which limit holds. */
export class CreateQuotaClock1763683202000 implements MigrationInterface {
  readonly name = 'CreateQuotaClock1763683202000';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Not now(): that is when the transaction began, which is before it waited for the lock.
    await queryRunner.query(`
      CREATE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'`);
    await queryRunner.query(`
      CREATE FUNCTION quota_period(p_at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
        SELECT date_trunc('month', p_at AT TIME ZONE 'UTC')::date
      $$`);
    await queryRunner.query(`
      CREATE FUNCTION quota_period_end(p_period_start date) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
        SELECT (p_period_start + interval '1 month') AT TIME ZONE 'UTC'
      $$`);
    // NULL for a plan that it does not know: nothing compares below NULL, so such an organization is granted nothing.
    await queryRunner.query(`
      CREATE FUNCTION quota_limit(p_own integer, p_plan text, p_free_limit integer, p_pro_limit integer) RETURNS integer
      LANGUAGE sql IMMUTABLE AS $$
        SELECT coalesce(p_own, CASE p_plan WHEN 'free' THEN p_free_limit WHEN 'pro' THEN p_pro_limit END)
      $$`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP FUNCTION quota_limit');
    await queryRunner.query('DROP FUNCTION quota_period_end');
    await queryRunner.query('DROP FUNCTION quota_period');
    await queryRunner.query('DROP FUNCTION quota_now');
  }
}

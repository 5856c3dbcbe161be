import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `quota_reservations` is the book: a row per call, from which `quota_periods` can be recomputed. A reservation ends in
 * one of two ways: settled, or lapsed, when its lease ran out and its room was seen to be free again.
 */
export class CreateQuotaTables1763683201000 implements MigrationInterface {
  readonly name = 'CreateQuotaTables1763683201000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE quota_periods (
        organization_id text NOT NULL REFERENCES organizations (id),
        period_start date NOT NULL CHECK (extract(day FROM period_start) = 1),
        used integer NOT NULL CHECK (used >= 0),
        PRIMARY KEY (organization_id, period_start)
      )`);
    await queryRunner.query(`
      CREATE TABLE quota_reservations (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        organization_id text NOT NULL REFERENCES organizations (id),
        key_id text NOT NULL REFERENCES api_keys (id),
        request_id text NOT NULL,
        channel_id text NOT NULL,
        period_start date NOT NULL CHECK (extract(day FROM period_start) = 1),
        required integer NOT NULL CHECK (required >= 0),
        created_at timestamptz NOT NULL,
        leased_until timestamptz NOT NULL,
        lapsed_at timestamptz,
        settled_at timestamptz,
        fetched integer CHECK (fetched >= 0),
        forfeited integer NOT NULL DEFAULT 0 CHECK (forfeited >= 0),
        charged integer GENERATED ALWAYS AS (fetched - forfeited) STORED CHECK (charged BETWEEN 0 AND required),
        CHECK ((settled_at IS NULL) = (fetched IS NULL)),
        CHECK (settled_at IS NOT NULL OR forfeited = 0)
      )`);
    // Only live reservations are in it, so it stays as small as the number of calls in flight.
    await queryRunner.query(`
      CREATE INDEX quota_reservations_live ON quota_reservations (organization_id)
        WHERE settled_at IS NULL AND lapsed_at IS NULL`);
    await queryRunner.query(
      'CREATE INDEX quota_reservations_period ON quota_reservations (organization_id, period_start)',
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE quota_reservations');
    await queryRunner.query('DROP TABLE quota_periods');
  }
}

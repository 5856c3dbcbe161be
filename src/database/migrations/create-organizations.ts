import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateOrganizations1763683200000 implements MigrationInterface {
  readonly name = 'CreateOrganizations1763683200000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE organizations (
        id text PRIMARY KEY,
        name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
        plan text NOT NULL CHECK (plan IN ('free', 'pro')),
        monthly_limit integer CHECK (monthly_limit >= 0),
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        deleted_at timestamptz
      )`);
    await queryRunner.query('CREATE INDEX organizations_created ON organizations (created_at, id)');
    await queryRunner.query('CREATE INDEX organizations_name ON organizations (name)');
    await queryRunner.query(`
      CREATE TABLE api_keys (
        id text PRIMARY KEY,
        organization_id text NOT NULL REFERENCES organizations (id),
        name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
        prefix text NOT NULL,
        hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        expires_at timestamptz,
        revoked_at timestamptz,
        last_used_at timestamptz,
        replaced_by text REFERENCES api_keys (id)
      )`);
    await queryRunner.query('CREATE INDEX api_keys_organization ON api_keys (organization_id, created_at, id)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE api_keys');
    await queryRunner.query('DROP TABLE organizations');
  }
}

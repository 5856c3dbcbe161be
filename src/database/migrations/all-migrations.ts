import type { MigrationInterface, QueryRunner } from 'typeorm';
import { JOB_SLICES } from './job-slices.js';
import { JOBS } from './jobs.js';
import { ORGANIZATIONS } from './organizations.js';
import { QUOTA } from './quota.js';
import { WEBHOOKS } from './webhooks.js';

/** Creates the whole schema: tables, and the functions that change them. */
export class CreateSchema1763683200000 implements MigrationInterface {
  readonly name = 'CreateSchema1763683200000';

  async up(queryRunner: QueryRunner): Promise<void> {
    for (const statements of [ORGANIZATIONS, QUOTA, WEBHOOKS, JOBS, JOB_SLICES]) await queryRunner.query(statements);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('The first migration cannot be undone. Drop the database instead.'));
  }
}

/** Every migration, the oldest first; one that was released is never edited. */
export const MIGRATIONS = [CreateSchema1763683200000];

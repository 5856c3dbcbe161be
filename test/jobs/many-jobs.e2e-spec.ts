import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NEW_JOB_EXAMPLE } from '../../src/jobs/dto/job.dto.js';
import { SliceSteps } from './slice-steps.js';

const REQUEST = JSON.stringify(NEW_JOB_EXAMPLE.request);

const FEW = 200;
const MANY = 5_000;
const ORGANIZATIONS = 50;

/** Indexes are deeper by a block or two; whatever reads each of 25 times as many jobs reads far more. */
const blocksMax = (few: number): number => 3 * few + 40;

const STATEMENTS = {
  claim: 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL)',
  'claim of one organization': `SELECT * FROM job_claim(gen_random_uuid(), 60, 'org_of_many_1')`,
  sweep: `SELECT * FROM job_sweep('{pro}', 0, 0)`,
  removal: 'SELECT job_remove_batch(200)',
};

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start();
});
afterAll(() => steps.service.close());

/** Jobs of each kind that wait: for a worker, for quota, and for the end of the week after their results. */
async function addJobs(first: number, last: number): Promise<void> {
  const organization = `'org_of_many_' || number % ${ORGANIZATIONS}`;
  await steps.service.query(`
    INSERT INTO organizations (id, name, plan) SELECT 'org_of_many_' || number, 'Many', 'pro'
      FROM generate_series(0, ${ORGANIZATIONS - 1}) number ON CONFLICT DO NOTHING;
    INSERT INTO api_keys (id, organization_id, name, prefix, hash)
      SELECT 'key_of_many_' || number, 'org_of_many_' || number, 'Many', 'ctk', sha256(number::text::bytea)
        FROM generate_series(0, ${ORGANIZATIONS - 1}) number ON CONFLICT DO NOTHING;
    INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, created_at, state, reason,
                      next_run_at, finished_at, expires_at, remove_at)
      SELECT 'job_' || kind || number, ${organization}, 'key_of_many_' || number % ${ORGANIZATIONS}, '${REQUEST}', 1,
             clock_now(), kind, CASE WHEN kind = 'paused' THEN 'plan_limit_exceeded' END,
             CASE WHEN kind = 'running' THEN clock_now() - interval '1 hour' END,
             CASE WHEN kind = 'completed' THEN clock_now() END, CASE WHEN kind = 'completed' THEN clock_now() END,
             CASE WHEN kind = 'completed' THEN clock_now() END
        FROM generate_series(${first}, ${last}) number, unnest('{running,paused,completed}'::text[]) kind;
    DO 'BEGIN WHILE job_remove_batch(200) > 0 LOOP END LOOP; END'`);
  await steps.service.query('VACUUM ANALYZE');
}

/** The blocks that a statement reads on a connection that has run it before. */
async function blocksOf(statement: string): Promise<number> {
  const blocks: number[] = [];
  for (let run = 0; run < 5; run++) {
    const [row] = await steps.service.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
    const [{ Plan: plan }] = row?.['QUERY PLAN'] as [{ Plan: Record<string, number> }];
    blocks.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
  }
  return Math.min(...blocks);
}

async function blocksOfAll(): Promise<Record<string, number>> {
  const blocks: Record<string, number> = {};
  for (const [name, statement] of Object.entries(STATEMENTS)) blocks[name] = await blocksOf(statement);
  return blocks;
}

describe('with 5,000 jobs that are due, 5,000 that wait for quota and 5,000 whose results were removed', () => {
  it('the workers look for what to do at the cost of 200 of each', async () => {
    await addJobs(1, FEW);
    const few = await blocksOfAll();
    await addJobs(FEW + 1, MANY);
    const many = await blocksOfAll();
    const grown = Object.keys(STATEMENTS).filter((name) => (many[name] ?? 0) > blocksMax(few[name] ?? 0));
    expect({ few, many, grown }).toEqual({ few, many, grown: [] });
    expect((await steps.claim())?.organizationId).toMatch(/^org_of_many_/);
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { NEW_JOB_EXAMPLE } from '../../src/jobs/dto/job.dto.js';
import { SliceSteps } from './slice-steps.js';

const REQUEST = JSON.stringify(NEW_JOB_EXAMPLE.request);

const FEW = 200;
const MANY = 5_000;
const ORGANIZATIONS = 50;

/** Indexes are deeper by a block or two; whatever reads each of 25 times as many jobs reads far more. */
const blocksMax = (few: number): number => 3 * few + 40;

const STATEMENTS = {
  claim: 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL, true)',
  'claim of one organization': `SELECT * FROM job_claim(gen_random_uuid(), 60, 'org_of_many_1', true)`,
  sweep: `SELECT * FROM job_sweep('{pro}', 0, 0)`,
  removal: 'SELECT job_remove_batch(200)',
};
/** Of jobs of which no list was read. */
const CLAIMS = {
  claim: 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL, true)',
  'claim of videos': 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL, false)',
  'claim of videos of one organization': `SELECT * FROM job_claim(gen_random_uuid(), 60, 'org_of_lists_1', false)`,
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

/** Organizations with jobs of which the list is due: the first one has most of them. */
async function addLists(first: number, last: number): Promise<void> {
  await steps.service.query(`
    INSERT INTO organizations (id, name, plan) SELECT 'org_of_lists_' || number, 'Lists', 'pro'
      FROM generate_series(${first}, ${last}) number;
    INSERT INTO api_keys (id, organization_id, name, prefix, hash)
      SELECT 'key_of_lists_' || number, 'org_of_lists_' || number, 'Lists', 'ctk', sha256(('l' || number)::bytea)
        FROM generate_series(${first}, ${last}) number;
    INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, created_at, next_run_at)
      SELECT 'job_lists' || number || '_' || place, 'org_of_lists_' || owner, 'key_of_lists_' || owner, '${REQUEST}', 1,
             clock_now(), clock_now() - interval '1 hour'
        FROM generate_series(${first}, ${last}) number, generate_series(1, 2) place,
             LATERAL (SELECT CASE place WHEN 1 THEN number ELSE 1 END AS owner) owners`);
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

async function blocksOfAll(statements: Record<string, string>): Promise<Record<string, number>> {
  const blocks: Record<string, number> = {};
  for (const [name, statement] of Object.entries(statements)) blocks[name] = await blocksOf(statement);
  return blocks;
}

/** The statements that read more when there is more to do. */
async function grownOf(
  statements: Record<string, string>,
  add: (first: number, last: number) => Promise<void>,
): Promise<object> {
  await add(1, FEW);
  const few = await blocksOfAll(statements);
  await add(FEW + 1, MANY);
  const many = await blocksOfAll(statements);
  return Object.fromEntries(
    Object.keys(statements).flatMap((name) => {
      const [from = 0, to = 0] = [few[name], many[name]];
      return to > blocksMax(from) ? [[name, { from, to }]] : [];
    }),
  );
}

afterEach(() => steps.reset());

describe('with 5,000 jobs that are due, 5,000 that wait for quota and 5,000 whose results were removed', () => {
  it('the workers look for what to do at the cost of 200 of each', async () => {
    expect(await grownOf(STATEMENTS, addJobs)).toEqual({});
    expect((await steps.claim())?.organizationId).toMatch(/^org_of_many_/);
  });
});

describe('with 5,000 organizations whose jobs wait for a page of their list, one of which has 5,000', () => {
  it('a claim costs as much as with 200, also one that may read no list and finds nothing', async () => {
    expect(await grownOf(CLAIMS, addLists)).toEqual({});
    expect(await steps.service.query(CLAIMS['claim of videos'])).toEqual([]);
    expect((await steps.claim())?.organizationId).toMatch(/^org_of_lists_/);
  });
});

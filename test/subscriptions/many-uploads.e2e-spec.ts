import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';

const FEW = 1_000;
const MANY = 40_000;

/** Indexes are deeper by a block or two; whatever reads each of the uploads reads far more. */
const blocksMax = (few: number): number => 3 * few + 100;

let steps: SliceSteps;
let run: SubscriptionRun;
beforeAll(async () => {
  steps = await SliceSteps.start();
  run = await SubscriptionRun.create(steps, '@tidewater');
  await steps.finish();
});
afterAll(() => steps.service.close());

/** Adds uploads that were seen, with a pending one and with results at the end. */
async function addUploads(first: number, last: number): Promise<void> {
  await steps.service.query(`
    INSERT INTO job_videos (job_id, position, video_id, upload, state, sequence, decided_at, entry, cached)
      SELECT '${run.id}', number, 'upload' || number, '{}', CASE WHEN decided THEN 'succeeded' ELSE 'seen' END,
             CASE WHEN decided THEN number END, clock_now(), CASE WHEN decided THEN '\\x00'::bytea END, CASE WHEN decided THEN true END
        FROM (SELECT number, number % 2 = 0 AS decided FROM generate_series(${first}, ${last}) number) numbers;
    UPDATE jobs SET last_position = ${last}, seen_position = ${last}, succeeded = ${last}, cached = ${last}, total = ${last}, remove_at = clock_now()
      WHERE id = '${run.id}'`);
  await steps.service.query('VACUUM ANALYZE');
}

/** The blocks that a statement reads which has run before. */
async function blocksOf(statement: string): Promise<number> {
  const blocks: number[] = [];
  for (let time = 0; time < 3; time++) {
    const [row] = await steps.service.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
    const [{ Plan: plan }] = row?.['QUERY PLAN'] as [{ Plan: Record<string, number> }];
    blocks.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
  }
  return Math.min(...blocks);
}

async function blocksOfAll(): Promise<Record<string, number>> {
  const claimed = `WITH claimed AS MATERIALIZED (
    UPDATE jobs SET claim = gen_random_uuid(), claimed_until = clock_now() WHERE id = '${run.id}' RETURNING claim)`;
  const page = `{"added":[],"decided":"seen","changed":[],"continuation":null,"ended":true,"sees_all":true,"channel_id":"UC"}`;
  const slice = `{"videos":[],"fetched":0,"delay_seconds":0,"setbacks":0,"restart_list":false,"is_check":false}`;
  const statements = {
    'known uploads': `SELECT position FROM job_videos WHERE job_id = '${run.id}'
      AND video_id = ANY (ARRAY(SELECT 'upload' || number FROM generate_series(1501, 1510) number))`,
    check: `${claimed} SELECT subscription_commit_check('${run.id}', claim, '${page}') FROM claimed`,
    slice: `${claimed} SELECT job_commit_slice('${run.id}', claim, '${slice}', '', 0, 0) FROM claimed`,
    change: `SELECT subscription_change('${run.organization.id}', '${run.id}', 900, 'running', 0)`,
    request: `SELECT subscription_check('${run.organization.id}', '${run.id}', 0)`,
    removal: 'SELECT job_remove_batch(10)',
  };
  const blocks: Record<string, number> = {};
  for (const [name, statement] of Object.entries(statements)) blocks[name] = await blocksOf(statement);
  return blocks;
}

it('what checks and slices read does not grow with the uploads that a subscription has seen', async () => {
  await addUploads(1_001, 1_000 + FEW);
  const few = await blocksOfAll();
  await addUploads(1_001 + FEW, 1_000 + MANY);
  const many = await blocksOfAll();
  const grown = Object.entries(many).filter(([name, blocks]) => blocks > blocksMax(few[name] ?? 0));
  expect(grown.map(([name, blocks]) => ({ name, few: few[name], blocks }))).toEqual([]);
});

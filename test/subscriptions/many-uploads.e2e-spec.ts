import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';

const FEW = 1_000;
const MANY = 40_000;

/** Indexes are deeper by a block or two; whatever reads each of the uploads reads far more. */
const blocksMax = (few: number): number => 3 * few + 100;

let steps: SliceSteps;
let run: SubscriptionRun;
let source: string;
let checks = 0;
beforeAll(async () => {
  steps = await SliceSteps.start();
  run = await SubscriptionRun.create(steps, '@tidewater');
  await steps.finish();
  source = String((await run.row())['source_id']);
});
afterAll(() => steps.service.close());

/** Adds uploads that the source has found, some with results. */
async function addUploads(first: number, last: number): Promise<void> {
  await steps.service.query(`
    INSERT INTO source_uploads (source_id, video_id, position, first_position, state, found_at)
      SELECT '${source}', 'upload' || number, number, number, 'new', clock_now() FROM generate_series(${first}, ${last}) number;
    UPDATE sources SET last_position = ${last}, seen_position = ${last};
    INSERT INTO job_videos (job_id, position, video_id, upload, state, sequence, decided_at, entry, cached)
      SELECT '${run.id}', number, 'upload' || number, '{}', 'succeeded', number, clock_now(), '\\x00'::bytea, true
        FROM generate_series(${first}, ${last}) number;
    UPDATE jobs SET place = ${last}, last_position = ${last}, succeeded = ${last}, cached = ${last}, total = ${last}, remove_at = clock_now()
      WHERE id = '${run.id}'`);
  await steps.service.query('VACUUM ANALYZE');
}

/** The blocks that a statement reads which has run before. */
async function blocksOf(statement: string): Promise<number> {
  const blocks: number[] = [];
  for (let time = 0; time < 3; time++) {
    await steps.service.query('UPDATE sources SET next_check_at = clock_now(), claim = NULL');
    const [row] = await steps.service.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
    const [{ Plan: plan }] = row?.['QUERY PLAN'] as [{ Plan: Record<string, number> }];
    blocks.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
  }
  return Math.min(...blocks);
}

async function blocksOfAll(): Promise<Record<string, number>> {
  const claimed = (table: string, id: string): string => `WITH claimed AS MATERIALIZED (
    UPDATE ${table} SET claim = gen_random_uuid(), claimed_until = clock_now() WHERE id = '${id}' RETURNING claim)`;
  const listed = { state: 'new', is_old: false, upload: '{}', kind: 'video', published_at: null, ranked: false };
  const uploads = [{ ...listed, video_id: `new ${(checks += 1)}` }];
  const page = JSON.stringify({ uploads, found: 1, decided: 'seen', end: 'ended', sees_all: true, for_starts: true });
  const slice = `{"videos":[],"fetched":0,"delay_seconds":0,"setbacks":0,"restart_list":false}`;
  const statements = {
    'known uploads': `SELECT position FROM source_uploads WHERE source_id = '${source}'
      AND video_id = ANY (ARRAY(SELECT 'upload' || number FROM generate_series(1501, 1510) number))`,
    claim: `SELECT source_claim(gen_random_uuid(), 60, NULL, true)`,
    starts: `SELECT source_starts(sources) FROM sources`,
    check: `${claimed('sources', source)} SELECT source_commit_page('${source}', claim, '${page}') FROM claimed`,
    slice: `${claimed('jobs', run.id)} SELECT job_commit_slice('${run.id}', claim, '${slice}', '', 0, 0) FROM claimed`,
    change: `SELECT subscription_change('${run.organization.id}', '${run.id}', 900, 'running', 0, NULL)`,
    request: `SELECT subscription_check('${run.organization.id}', '${run.id}', 0)`,
    removal: 'SELECT job_remove_batch(10)',
  };
  const blocks: Record<string, number> = {};
  for (const [name, statement] of Object.entries(statements)) blocks[name] = await blocksOf(statement);
  return blocks;
}

it('what checks and slices read does not grow with the uploads that a source has', async () => {
  await addUploads(1_001, 1_000 + FEW);
  const few = await blocksOfAll();
  await addUploads(1_101 + FEW, 1_000 + MANY);
  const many = await blocksOfAll();
  const grown = Object.entries(many).filter(([name, blocks]) => blocks > blocksMax(few[name] ?? 0));
  expect(grown.map(([name, blocks]) => ({ name, few: few[name], blocks }))).toEqual([]);
});

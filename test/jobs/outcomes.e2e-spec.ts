import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { SliceOutcome } from '../../src/jobs/work/slice.js';
import { createTestDatabase, type TestDatabase } from '../database/test-database.js';

type Row = Record<string, unknown>;
const NOW = new Date().toISOString();

/** A job whose list is being read, so that its next slice needs no video. */
const LISTING = { state: 'listing', setbacks: 2, total: 2, succeeded: 0, failed: 0, started_at: NOW, request: '{}' };
const BLOCKED = { state: 'paused', reason: 'upstream_blocked', setbacks: 3 };
const FOLLOWED = { ...LISTING, state: 'running', setbacks: 1, check_seconds: 3_600, channel_id: 'UC' };

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase('migrated');
});
afterAll(() => database.drop());

/** What an outcome makes of a job. */
async function after(outcome: SliceOutcome, columns: Row = {}): Promise<Row> {
  const job = JSON.stringify({ ...LISTING, ...columns, results_seconds: 60 });
  const seconds = 'seconds' in outcome ? outcome.seconds : 0;
  const [row] = await database.query(
    `SELECT state, reason, setbacks, round(extract(epoch FROM next_run_at - clock_now()))::integer AS seconds
       FROM job_transition(json_populate_record(NULL::jobs, '${job}'), 'slice', '${outcome.type}', ${seconds})`,
  );
  return row ?? {};
}

describe('a job after a slice', () => {
  const goesOn = { state: 'listing', reason: null, setbacks: 0, seconds: 0 };

  it('pauses while the service is blocked, twice as long each time, up to 15 minutes', async () => {
    for (const [setbacks, seconds] of [
      [0, 30],
      [1, 60],
      [2, 120],
      [4, 480],
      [5, 900],
      [2_000, 900],
    ] as const)
      expect(await after({ type: 'blocked' }, { setbacks })).toEqual({ ...BLOCKED, setbacks: setbacks + 1, seconds });
  });

  it('goes on at once when something was served or nothing was due, and when it can read what is held back', async () => {
    expect(await after({ type: 'served', seconds: 0 })).toEqual(goesOn);
    expect(await after({ type: 'unserved' })).toEqual(goesOn);
    expect(await after({ type: 'served', seconds: 20 })).toEqual({ ...goesOn, seconds: 20 });
  });

  it('waits after a slice in which nothing was served, and not after a stop; to be held back is no setback', async () => {
    expect(await after({ type: 'failed' })).toEqual({ ...goesOn, setbacks: 3, seconds: 120 });
    expect(await after({ type: 'stopped' })).toEqual({ ...goesOn, setbacks: 2 });
    expect(await after({ type: 'busy', seconds: 40 })).toEqual({ ...goesOn, setbacks: 2, seconds: 40 });
  });

  it.each<[outcome: SliceOutcome, expected: object]>([
    [{ type: 'unserved' }, { ...BLOCKED, seconds: 0 }],
    [{ type: 'stopped' }, { ...BLOCKED, seconds: 0 }],
    [
      { type: 'busy', seconds: 40 },
      { ...BLOCKED, seconds: 40 },
    ],
    [{ type: 'failed' }, { ...BLOCKED, setbacks: 4, seconds: 240 }],
    [{ type: 'quota_reserved' }, { ...BLOCKED, seconds: 5 }],
    [{ type: 'served', seconds: 0 }, goesOn],
    [{ type: 'organization_deleted' }, { ...goesOn, state: 'canceled', seconds: null }],
    [{ type: 'plan_excludes' }, { ...goesOn, state: 'paused', reason: 'plan_changed', seconds: null }],
  ])(
    'that is paused for a block ends the pause only when something was served or it ends: %j',
    async (outcome, expected) => {
      expect(await after(outcome, BLOCKED)).toEqual(expected);
    },
  );

  it('without quota looks each hour for what costs nothing, until something was reserved', async () => {
    const paused = { state: 'paused', reason: 'plan_limit_exceeded', setbacks: 3 };
    expect(await after({ type: 'without_quota' })).toEqual({ ...paused, setbacks: 0, seconds: 3_600 });
    expect(await after({ type: 'without_quota' }, { request: '{"onQuota":"fail"}' })).toMatchObject({
      state: 'failed',
    });
    expect(await after({ type: 'unserved' }, paused)).toEqual({ ...paused, seconds: 0 });
    expect(await after({ type: 'served', seconds: 0 }, paused)).toEqual(goesOn);
  });

  it.each(['paused_by_caller', 'channel_not_found', 'upstream_blocked'])(
    'is not changed by a slice that ran when its subscription was paused: %s',
    async (reason) => {
      const paused = { state: 'paused', reason };
      for (const type of ['unserved', 'blocked', 'failed', 'without_quota'] as const)
        expect(await after({ type }, { ...FOLLOWED, ...paused })).toMatchObject({ ...paused, seconds: null });
    },
  );

  it('goes on when it is a subscription, also while the service is blocked', async () => {
    const blocked = { state: 'running', reason: 'upstream_blocked' };
    expect(await after({ type: 'blocked' }, FOLLOWED)).toMatchObject(blocked);
    expect(await after({ type: 'busy', seconds: 40 }, { ...FOLLOWED, ...blocked })).toMatchObject(blocked);
    expect(await after({ type: 'served', seconds: 0 }, { ...FOLLOWED, ...blocked })).toMatchObject({
      ...{ state: 'running', reason: null },
    });
  });
});

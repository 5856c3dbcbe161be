import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { SliceOutcome } from '../../src/jobs/work/slice.js';
import { createTestDatabase, type TestDatabase } from '../database/test-database.js';

type Row = Record<string, unknown>;
const DAY = 86_400;
const NOW = new Date().toISOString();

/** A job whose list is being read, so that its next slice needs no video. */
const LISTING = { state: 'listing', setbacks: 2, total: 2, succeeded: 0, failed: 0, started_at: NOW, request: '{}' };
const BLOCKED = { state: 'paused', reason: 'upstream_blocked', setbacks: 3 };
const FOLLOWED = {
  ...LISTING,
  state: 'running',
  setbacks: 1,
  check_seconds: 3_600,
  next_check_at: NOW,
  channel_id: 'UC',
};

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase('migrated');
});
afterAll(() => database.drop());

/** What an outcome makes of a job. */
async function after(outcome: SliceOutcome, columns: Row = {}, event: 'slice' | 'check' = 'slice'): Promise<Row> {
  const job = JSON.stringify({ ...LISTING, ...columns, results_seconds: 60 });
  const seconds = 'seconds' in outcome ? outcome.seconds : 0;
  const until = (column: string): string => `round(extract(epoch FROM ${column} - clock_now()))::integer`;
  const [row] = await database.query(
    `SELECT state, reason, setbacks, ${until('next_run_at')} AS seconds, ${until('next_check_at')} AS check_seconds
       FROM job_transition(json_populate_record(NULL::jobs, '${job}'), '${event}', '${outcome.type}', ${seconds})`,
  );
  const { check_seconds: checkSeconds, ...ended } = row ?? {};
  return event === 'check' ? { ...ended, seconds: checkSeconds } : ended;
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

  it('is not changed by a slice that ran when its subscription was paused by the caller', async () => {
    const paused = { ...FOLLOWED, state: 'paused', reason: 'paused_by_caller' };
    for (const type of ['unserved', 'blocked', 'failed', 'without_quota'] as const)
      expect(await after({ type }, paused)).toMatchObject({
        state: 'paused',
        reason: 'paused_by_caller',
        seconds: null,
      });
  });
});

describe('a check that has read nothing', () => {
  const end = (type: 'channel_not_found' | 'blocked' | 'failed', columns: Row = {}) =>
    after({ type }, { ...FOLLOWED, ...columns }, 'check');
  const unreadForDays = (days: number): Row => ({
    unread_since: new Date(Date.now() - days * DAY * 1_000).toISOString(),
  });

  it('is tried again after growing pauses', async () => {
    const goesOn = { state: 'running', seconds: 60, setbacks: 2 };
    expect(await end('channel_not_found')).toEqual({ ...goesOn, reason: 'channel_not_found' });
    expect(await end('blocked')).toEqual({ ...goesOn, reason: 'upstream_blocked' });
    expect(await end('failed')).toEqual({ ...goesOn, reason: null });
  });

  it('is tried again when the pace allows it, which is no set-back however long it takes', async () => {
    expect(await after({ type: 'busy', seconds: 40 }, { ...FOLLOWED, ...unreadForDays(4) }, 'check')).toEqual({
      ...{ state: 'running', reason: null, seconds: 40, setbacks: 1 },
    });
  });

  it('pauses a subscription whose channel was never found, or not read for three days, and is tried again daily', async () => {
    const paused = { state: 'paused', seconds: DAY, setbacks: 2 };
    const unknown = { channel_id: null };
    expect(await end('channel_not_found', unknown)).toEqual({ ...paused, reason: 'channel_not_found' });
    expect(await end('blocked', unknown)).toMatchObject({ state: 'running' });
    expect(await end('channel_not_found', unreadForDays(3))).toEqual({ ...paused, reason: 'channel_not_found' });
    for (const type of ['blocked', 'failed'] as const)
      expect(await end(type, unreadForDays(3))).toEqual({ ...paused, reason: 'upstream_blocked' });
  });

  it.each<SliceOutcome>([{ type: 'blocked' }, { type: 'failed' }, { type: 'stopped' }, { type: 'busy', seconds: 40 }])(
    'does not end the pause of a subscription without quota: %j',
    async (outcome) => {
      const paused = { state: 'paused', reason: 'plan_limit_exceeded' };
      expect(await after(outcome, { ...FOLLOWED, ...paused, ...unreadForDays(4) }, 'check')).toMatchObject(paused);
    },
  );
});

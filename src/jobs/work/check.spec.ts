import { describe, expect, it } from '@jest/globals';
import { endOf, endOfCheck } from './check.js';
import { NEW_JOB_EXAMPLE, RUNNING_JOB_EXAMPLE, type JobDto } from '../dto/job.dto.js';
import type { SliceOutcome } from './slice.js';

const DAY = 86_400;

describe('a check that has read nothing', () => {
  const end = (
    type: 'channel_not_found' | 'blocked' | 'failed',
    { job = RUNNING_JOB_EXAMPLE, unreadDays = 0 }: { job?: JobDto; unreadDays?: number } = {},
  ) => {
    const outcome: SliceOutcome = type === 'failed' ? { type, restartList: false } : { type };
    const jobEnd = endOf({ job, kind: 'videos', setbacks: 1, subscription: null }, outcome);
    return endOfCheck({ job, setbacks: 1 }, { unreadSeconds: unreadDays * DAY }, outcome, jobEnd);
  };

  it('is tried again after growing pauses', () => {
    expect(end('channel_not_found')).toMatchObject({ state: null, reason: 'channel_not_found', delaySeconds: 60 });
    expect(end('blocked')).toMatchObject({ state: null, reason: 'upstream_blocked', delaySeconds: 60, setbacks: 2 });
    expect(end('failed')).toMatchObject({ state: null, reason: null, delaySeconds: 60, setbacks: 2 });
  });

  it('is tried again when the pace allows it, which is no set-back however long it takes', () => {
    const outcome = { type: 'busy', retryAfterSeconds: 40 } as const;
    const jobEnd = endOf({ job: RUNNING_JOB_EXAMPLE, kind: 'videos', setbacks: 1, subscription: null }, outcome);
    const ended = endOfCheck({ job: RUNNING_JOB_EXAMPLE, setbacks: 1 }, { unreadSeconds: 4 * DAY }, outcome, jobEnd);
    expect(ended).toMatchObject({ state: null, delaySeconds: 40, setbacks: 1 });
  });

  it('pauses a subscription whose channel was never found, or not read for three days, and is tried again daily', () => {
    const paused = { state: 'paused', delaySeconds: DAY };
    expect(end('channel_not_found', { job: NEW_JOB_EXAMPLE })).toMatchObject({
      ...paused,
      reason: 'channel_not_found',
    });
    expect(end('blocked', { job: NEW_JOB_EXAMPLE })).toMatchObject({ state: null });
    expect(end('channel_not_found', { unreadDays: 3 })).toMatchObject({ ...paused, reason: 'channel_not_found' });
    for (const type of ['blocked', 'failed'] as const)
      expect(end(type, { unreadDays: 3 })).toMatchObject({ ...paused, reason: 'upstream_blocked' });
  });

  it.each<SliceOutcome>([
    { type: 'blocked' },
    { type: 'failed', restartList: true },
    { type: 'stopped', restartList: false },
    { type: 'busy', retryAfterSeconds: 40 },
  ])('does not end the pause of a subscription without quota: %j', (outcome) => {
    const job = { ...RUNNING_JOB_EXAMPLE, state: 'paused', reason: 'plan_limit_exceeded' } as const;
    const walk = { start: null, kinds: [], createdAtMs: 0, seenAtMs: 0, seesAll: false, added: 0, delivered: 0 };
    const subscription = { dueAt: '', dueAtMs: 0, unreadSeconds: 4 * DAY, walk };
    const ended = endOf({ job, kind: 'check', setbacks: 0, subscription }, outcome);
    expect(ended).toMatchObject({ state: 'paused', reason: 'plan_limit_exceeded' });
  });
});

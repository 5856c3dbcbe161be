import { describe, expect, it } from '@jest/globals';
import { unlistedVideo, type VideoFailureCode } from '../domain/transcript.js';
import { failedEntry, type FailedEntry } from '../transcripts/transcript-events.js';
import { endOf, endOfCheck, followedRetrySeconds } from './check.js';
import { NEW_JOB_EXAMPLE, RUNNING_JOB_EXAMPLE, type JobDto } from './dto/job.dto.js';
import type { SliceOutcome } from './slice.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;

function failed(code: VideoFailureCode, dates: { publishedAt?: string; publishedText?: string } = {}): FailedEntry {
  const entry = failedEntry({ ...unlistedVideo('abcdefghijk'), ...dates }, { code });
  if (entry.ok) throw new Error('It has not failed.');
  return entry;
}

/** The delays of the tries of a video that fails again and again. */
function delays(entry: FailedEntry): number[] {
  const all: number[] = [];
  for (;;) {
    const delay = followedRetrySeconds(entry, all.length);
    if (delay === undefined) return all;
    all.push(delay);
  }
}

describe('a subscription tries a video again', () => {
  it('that failed for a reason that can pass for three days', () => {
    expect(delays(failed('upstream_failure'))).toEqual([600, HOUR, 6 * HOUR, DAY, DAY, DAY]);
  });

  it('that is live for 30 days, and announced for more than a year', () => {
    expect(delays(failed('video_live'))).toHaveLength(33);
    expect(delays(failed('video_not_live_yet'))).toHaveLength(403);
  });

  it('without captions until it is three days old, or for three days when its date is not known', () => {
    const daysAgo = (days: number) => ({ publishedAt: new Date(Date.now() - days * DAY * 1000).toISOString() });
    const counts = [{}, daysAgo(2), { publishedText: '2 days ago' }, daysAgo(4), { publishedText: '3 weeks ago' }].map(
      (dates) => delays(failed('transcript_unavailable', dates)).length,
    );
    expect(counts).toEqual([6, 6, 6, 0, 0]);
    expect(delays(failed('transcript_unavailable'))[0]).toBe(600);
  });

  it('never when its failure is final', () => {
    for (const code of ['video_private', 'video_members_only', 'language_unavailable'] as const)
      expect(delays(failed(code))).toEqual([]);
  });
});

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
    const subscription = { dueAt: '', dueAtMs: 0, unreadSeconds: 4 * DAY, nowMs: 0, walk };
    const ended = endOf({ job, kind: 'check', setbacks: 0, subscription }, outcome);
    expect(ended).toMatchObject({ state: 'paused', reason: 'plan_limit_exceeded' });
  });
});

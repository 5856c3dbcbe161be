import { describe, expect, it } from '@jest/globals';
import { NO_DETAILS, unlistedVideo, type VideoFailureCode } from '../domain/transcript.js';
import { failedEntry, succeededEntry, type Entry } from '../transcripts/transcript-events.js';
import {
  blocked,
  blocksService,
  endOfSlice,
  dispositionOf,
  setback,
  withoutQuota,
  type Disposition,
} from './slice-outcome.js';

const NOW = new Date('2026-11-01T12:00:00Z');
const SERVED = { now: NOW, serviceBlocked: false, stopped: false };
const BLOCKED = { ...SERVED, serviceBlocked: true };
const TEXT = { bytes: Buffer.alloc(0), jsonBytes: 2, crc32: 0 };

function failed(code: VideoFailureCode, publishedAt: string | null = null, retryAfterSeconds?: number): Entry {
  const upload = { ...unlistedVideo('abcdefghijk'), publishedAt };
  return failedEntry(upload, NO_DETAILS, { code, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });
}

describe('a video after a slice', () => {
  it('is decided by a transcript, and by a failure that a retry cannot change', () => {
    expect(dispositionOf(succeededEntry(unlistedVideo('abcdefghijk'), NO_DETAILS, TEXT, false), 0, SERVED)).toEqual({
      kind: 'decided',
    });
    for (const code of ['transcript_unavailable', 'language_unavailable', 'video_private'] as const)
      expect(dispositionOf(failed(code), 0, SERVED)).toEqual({ kind: 'decided' });
  });

  it('is tried again after 10 minutes, 1 hour and 6 hours, and decided after that', () => {
    const dispositions = [0, 1, 2, 3].map((retries) => dispositionOf(failed('upstream_failure'), retries, SERVED));
    expect(dispositions).toEqual([
      { kind: 'retry', afterSeconds: 600 },
      { kind: 'retry', afterSeconds: 3_600 },
      { kind: 'retry', afterSeconds: 21_600 },
      { kind: 'decided' },
    ]);
  });

  it('without captions is tried again only while it is younger than a day, and its date is known', () => {
    const disposition = (publishedAt: string | null): Disposition =>
      dispositionOf(failed('transcript_unavailable', publishedAt), 0, SERVED);
    expect(disposition('2026-10-31T12:00:01Z')).toEqual({ kind: 'retry', afterSeconds: 600 });
    expect(disposition('2026-10-31T12:00:00Z')).toEqual({ kind: 'decided' });
    expect(disposition(null)).toEqual({ kind: 'decided' });
  });

  it('stays pending, however often, while the platform blocks the service or the service holds back', () => {
    expect(dispositionOf(failed('upstream_blocked'), 0, BLOCKED)).toEqual({ kind: 'blocked' });
    expect(dispositionOf(failed('upstream_busy', null, 7), 3, BLOCKED)).toEqual({ kind: 'busy', afterSeconds: 7 });
    expect(dispositionOf(failed('upstream_busy'), 0, SERVED)).toEqual({ kind: 'busy', afterSeconds: 30 });
  });

  it('that is refused while others are served is tried again as after any failure', () => {
    const dispositions = [0, 1, 3].map((retries) => dispositionOf(failed('upstream_blocked'), retries, SERVED));
    expect(dispositions.map(({ kind }) => kind)).toEqual(['retry', 'retry', 'decided']);
  });

  it('that was not read because the process stops is not counted as tried', () => {
    expect(dispositionOf(failed('upstream_timeout'), 0, { ...SERVED, stopped: true })).toEqual({ kind: 'unread' });
    expect(dispositionOf(failed('upstream_timeout'), 0, SERVED)).toEqual({ kind: 'retry', afterSeconds: 600 });
  });
});

describe('the platform blocks the service', () => {
  const video = (entry: Entry, retries = 0) => ({ entry, retries });

  it('when it refused videos and served none', () => {
    expect(blocksService(0, [video(failed('video_private')), video(failed('upstream_blocked'))])).toBe(true);
    expect(blocksService(1, [video(failed('upstream_blocked'))])).toBe(false);
    expect(blocksService(0, [video(failed('upstream_timeout'))])).toBe(false);
  });

  it('unless only videos were refused that have failed before', () => {
    expect(blocksService(0, [video(failed('upstream_blocked'), 1)])).toBe(false);
    expect(blocksService(0, [video(failed('upstream_blocked'), 1), video(failed('upstream_blocked'))])).toBe(true);
  });
});

describe('a job after a slice', () => {
  it('pauses while the platform blocks the service, twice as long each time, up to 15 minutes', () => {
    const ends = [0, 1, 2, 4, 5, 2_000].map((setbacks) =>
      endOfSlice([{ kind: 'decided' }, { kind: 'blocked' }], setbacks),
    );
    expect(ends.map(({ delaySeconds }) => delaySeconds)).toEqual([30, 60, 120, 480, 900, 900]);
    expect(ends[0]).toEqual({ change: { state: 'paused', reason: 'upstream_blocked' }, delaySeconds: 30, setbacks: 1 });
  });

  it('goes on at once otherwise', () => {
    expect(endOfSlice([{ kind: 'retry', afterSeconds: 600 }, { kind: 'decided' }], 3)).toEqual({});
  });

  it('waits for the first video that the service can read again when it holds back', () => {
    const dispositions: Disposition[] = [
      { kind: 'busy', afterSeconds: 40 },
      { kind: 'busy', afterSeconds: 20 },
      { kind: 'decided' },
    ];
    expect(endOfSlice(dispositions, 0)).toEqual({ delaySeconds: 20 });
  });

  it('without quota pauses or fails as requested, and waits for seconds while other calls hold the rest', () => {
    expect(withoutQuota({ limit: 5, used: 5 }, 'pause')).toEqual({
      change: { state: 'paused', reason: 'plan_limit_exceeded' },
    });
    expect(withoutQuota({ limit: 5, used: 6 }, 'fail')).toEqual({
      change: { state: 'failed', reason: 'plan_limit_exceeded' },
    });
    expect(withoutQuota({ limit: 5, used: 4 }, 'fail')).toEqual({ delaySeconds: 5 });
  });

  it('counts consecutive setbacks', () => {
    expect([setback(2).setbacks, blocked(0).setbacks]).toEqual([3, 1]);
  });
});

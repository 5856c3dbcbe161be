import { describe, expect, it } from '@jest/globals';
import { NO_DETAILS, unlistedVideo, type VideoFailureCode } from '../domain/transcript.js';
import { failedEntry, succeededEntry, type Entry } from '../transcripts/transcript-events.js';
import {
  blocked,
  dispositionOf,
  endOfSlice,
  isAnswered,
  refusesAll,
  setback,
  stayPaused,
  videosOfSlice,
  withoutQuota,
  type Disposition,
  type SliceConditions,
  type SliceVideo,
} from './slice.js';

const NOW = new Date('2026-11-01T12:00:00Z');
const SERVED = { now: NOW, allRefused: false, stopped: false };
const REFUSED = { ...SERVED, allRefused: true };
const TEXT = { deflated: Buffer.alloc(0), jsonBytes: 2, crc32: 0 };

function failed(code: VideoFailureCode, publishedAt: string | null = null, retryAfterSeconds?: number): Entry {
  const upload = { ...unlistedVideo('abcdefghijk'), publishedAt };
  return failedEntry(upload, NO_DETAILS, { code, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });
}

function video(entry: Entry, retries = 0, source: SliceVideo['source'] = 'platform'): SliceVideo {
  return { entry, retries, source };
}

const FETCHED = succeededEntry(unlistedVideo('abcdefghijk'), NO_DETAILS, TEXT, false);
const CACHED = succeededEntry(unlistedVideo('abcdefghijk'), NO_DETAILS, TEXT, true);
/** The egress is paused. */
const BLOCK = failed('upstream_blocked', null, 20);

/** How a slice with these videos ends. */
function end(
  videos: readonly SliceVideo[],
  { setbacks = 0, paused = false, stopped = false, durationSeconds = 3 } = {},
  conditions: SliceConditions = { ...SERVED, allRefused: refusesAll(videos), stopped },
) {
  const decided = videos.map((each) => ({ ...each, disposition: dispositionOf(each, conditions) }));
  return endOfSlice({ videos: decided, setbacks, paused, stopped, durationSeconds });
}

describe('a video after a slice', () => {
  it('is decided by a transcript, and by a failure that a retry cannot change', () => {
    expect(dispositionOf(video(FETCHED), SERVED)).toEqual({
      kind: 'decided',
    });
    for (const code of ['transcript_unavailable', 'language_unavailable', 'video_private'] as const)
      expect(dispositionOf(video(failed(code), 0), SERVED)).toEqual({ kind: 'decided' });
  });

  it('is tried again after 10 minutes, 1 hour and 6 hours, and decided after that', () => {
    const dispositions = [0, 1, 2, 3].map((retries) =>
      dispositionOf(video(failed('upstream_failure'), retries), SERVED),
    );
    expect(dispositions).toEqual([
      { kind: 'retry', afterSeconds: 600 },
      { kind: 'retry', afterSeconds: 3_600 },
      { kind: 'retry', afterSeconds: 21_600 },
      { kind: 'decided' },
    ]);
  });

  it('without captions is tried again only while it is younger than a day, and its date is known', () => {
    const disposition = (publishedAt: string | null): Disposition =>
      dispositionOf(video(failed('transcript_unavailable', publishedAt), 0), SERVED);
    expect(disposition('2026-10-31T12:00:01Z')).toEqual({ kind: 'retry', afterSeconds: 600 });
    expect(disposition('2026-10-31T12:00:00Z')).toEqual({ kind: 'decided' });
    expect(disposition(null)).toEqual({ kind: 'decided' });
  });

  it('stays pending, however often, while the service is blocked or holds back', () => {
    expect(dispositionOf(video(BLOCK, 3), SERVED)).toEqual({ kind: 'blocked' });
    expect(dispositionOf(video(failed('upstream_blocked'), 3), REFUSED)).toEqual({ kind: 'blocked' });
    expect(dispositionOf(video(failed('upstream_busy', null, 7), 3), REFUSED)).toEqual({
      kind: 'busy',
      afterSeconds: 7,
    });
    expect(dispositionOf(video(failed('upstream_busy')), SERVED)).toEqual({ kind: 'busy', afterSeconds: 30 });
  });

  it('that is refused by itself is tried again as after any failure', () => {
    const dispositions = [0, 1, 3].map((retries) => dispositionOf(video(failed('upstream_blocked'), retries), SERVED));
    expect(dispositions.map(({ kind }) => kind)).toEqual(['retry', 'retry', 'decided']);
  });

  it('that the service gave up itself is not counted as tried', () => {
    for (const code of ['upstream_timeout', 'upstream_failure'] as const)
      expect(dispositionOf(video(failed(code), 3, 'none'), SERVED)).toEqual({ kind: 'unread' });
  });

  it('that was not read because the process stops is not counted as tried', () => {
    expect(dispositionOf(video(failed('upstream_timeout'), 0), { ...SERVED, stopped: true })).toEqual({
      kind: 'unread',
    });
    expect(dispositionOf(video(failed('upstream_timeout'), 0), SERVED)).toEqual({ kind: 'retry', afterSeconds: 600 });
  });
});

describe('the platform refuses all', () => {
  const refused = video(failed('upstream_blocked'), 1);

  it('when it refused two videos and answered for none', () => {
    expect(refusesAll([refused, refused])).toBe(true);
    expect(refusesAll([refused, refused, video(failed('upstream_failure')), video(CACHED, 0, 'known')])).toBe(true);
  });

  it('unless it refused one only, or answered for another', () => {
    expect(refusesAll([refused])).toBe(false);
    for (const entry of [FETCHED, CACHED, failed('video_private')])
      expect(refusesAll([refused, refused, video(entry)])).toBe(false);
  });
});

describe('an answer of the platform', () => {
  it('is a transcript that is fetched, and a failure that it stated to this slice', () => {
    for (const answer of [video(FETCHED), video(FETCHED, 0, 'known'), video(failed('transcript_unavailable'))])
      expect(isAnswered(answer)).toBe(true);
    for (const other of [
      video(CACHED, 0, 'known'),
      video(failed('video_private'), 0, 'known'),
      video(failed('upstream_failure')),
      video(failed('upstream_timeout'), 0, 'none'),
    ])
      expect(isAnswered(other)).toBe(false);
  });
});

describe('a job after a slice', () => {
  const paused = { state: 'paused', reason: 'upstream_blocked' };

  it('pauses while the service is blocked, twice as long each time, up to 15 minutes', () => {
    const ends = [0, 1, 2, 4, 5, 2_000].map((setbacks) =>
      end([video(CACHED, 0, 'known'), video(BLOCK, 2)], { setbacks }),
    );
    expect(ends.map(({ delaySeconds }) => delaySeconds)).toEqual([30, 60, 120, 480, 900, 900]);
    expect(ends[0]).toEqual({ change: paused, delaySeconds: 30, setbacks: 1 });
  });

  it('goes on with a block that began after something was fetched, and without a setback otherwise', () => {
    expect(end([video(FETCHED), video(BLOCK)])).toEqual({});
    expect(end([video(failed('upstream_failure')), video(FETCHED)], { setbacks: 2 })).toEqual({});
  });

  it('does not pause for one video that is refused', () => {
    expect(end([video(failed('upstream_blocked')), video(CACHED, 0, 'known')])).toEqual({});
  });

  it('stays paused until something is served', () => {
    const probe = (only: SliceVideo, stopped = false) => end([only], { setbacks: 4, paused: true, stopped });
    for (const entry of [failed('upstream_blocked'), failed('upstream_timeout'), failed('upstream_failure'), BLOCK])
      expect(probe(video(entry))).toEqual({ change: paused, delaySeconds: 480, setbacks: 5 });
    expect(probe(video(failed('upstream_timeout')), true)).toEqual({ change: paused, delaySeconds: 0, setbacks: 4 });
    expect(probe(video(CACHED, 0, 'known'))).toEqual({ change: paused, delaySeconds: 0, setbacks: 4 });
    expect(probe(video(failed('upstream_busy', null, 9)))).toEqual({ change: paused, delaySeconds: 6, setbacks: 4 });
    for (const entry of [FETCHED, failed('transcript_unavailable')]) expect(probe(video(entry))).toEqual({});
  });

  it('keeps the pause and its number of setbacks when its slice has no result', () => {
    expect(stayPaused({}, 3)).toEqual({ change: paused, delaySeconds: 0, setbacks: 3 });
    expect(stayPaused(setback(3), 3)).toEqual({ change: paused, delaySeconds: 240, setbacks: 4 });
    const canceled = { change: { state: 'canceled' as const, reason: null } };
    expect(stayPaused(canceled, 3)).toEqual(canceled);
  });

  it('waits after a slice in which the service itself gave up every video, and not after a stop', () => {
    const givenUp = video(failed('upstream_timeout'), 0, 'none');
    expect(end([givenUp], { setbacks: 2 })).toEqual({ delaySeconds: 120, setbacks: 3 });
    expect(end([givenUp, video(FETCHED)], { setbacks: 2 })).toEqual({});
    expect(end([givenUp], { setbacks: 2, stopped: true })).toEqual({ setbacks: 2 });
  });

  it('reads one video after three setbacks, and a whole slice after one without a setback', () => {
    expect([0, 2, 3, 31].map(videosOfSlice)).toEqual([25, 25, 1, 1]);
    for (const entry of [FETCHED, CACHED]) expect(end([video(entry)], { setbacks: 3 })).toEqual({});
  });

  it('waits for the first video that the service can read again when it holds back', () => {
    const videos = [
      video(failed('upstream_busy', null, 40)),
      video(failed('upstream_busy', null, 20)),
      video(failed('video_private')),
    ];
    const delays = [0, 15, 25].map((durationSeconds) => end(videos, { durationSeconds }));
    expect(delays.map(({ delaySeconds }) => delaySeconds)).toEqual([20, 5, 1]);
  });

  it('still looks for the video that causes its setbacks after a slice in which the service held back', () => {
    const busy = [video(failed('upstream_busy', null, 9))];
    expect(end(busy, { setbacks: 3 })).toEqual({ delaySeconds: 6, setbacks: 3 });
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

import { describe, expect, it } from '@jest/globals';
import { NO_DETAILS, unlistedVideo, type Upload, type VideoFailureCode } from '../../domain/transcript.js';
import { archiveRetry, followedRetry } from '../../transcripts/finality.js';
import { entryOf, failedEntry, type Entry } from '../../transcripts/delivery/transcript-events.js';
import { dispositionOf, isBlocked, outcomeOf, type ReadVideo, type SliceOutcome } from './slice.js';

const TEXT = { deflated: Buffer.alloc(0), jsonBytes: 2, crc32: 0 };

const LISTED = unlistedVideo('abcdefghijk');

function failed(code: VideoFailureCode, retryAfterSeconds?: number, upload: Upload = LISTED): Entry {
  return failedEntry(upload, { code, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });
}

function video(entry: Entry, retries = 0, givenUp = false, upload: Upload = LISTED): ReadVideo {
  const lastCode = retries > 0 && !entry.ok ? entry.error.code : null;
  return { position: 1, upload, entry, retries, lastCode, givenUp };
}

const READ = { ok: true, details: NO_DETAILS, transcript: TEXT, tracks: {} } as const;
const FETCHED = video(entryOf(unlistedVideo('abcdefghijk'), READ, false));
const CACHED = video(entryOf(unlistedVideo('abcdefghijk'), READ, true));
/** The egress is paused. */
const KNOWN_BLOCK = video(failed('upstream_blocked', 20), 3);
const REFUSED = video(failed('upstream_blocked'), 1);
const FAILED = video(failed('upstream_failure'));

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

function disposition(entry: Entry, { retries = 0, givenUp = false, blocked = false, stopped = false } = {}) {
  const conditions = { blocked, stopped, nowMs: NOW_MS, retry: archiveRetry };
  return dispositionOf(video(entry, retries, givenUp), conditions);
}

function outcome(videos: readonly ReadVideo[], { stopped = false, durationSeconds = 3 } = {}): SliceOutcome {
  return outcomeOf(videos, { stopped, durationSeconds });
}

describe('a video after a slice', () => {
  it('is decided by a transcript, and by a failure that a retry cannot change', () => {
    for (const { entry } of [FETCHED, CACHED]) expect(disposition(entry)).toBe('decided');
    for (const code of ['transcript_unavailable', 'language_unavailable', 'video_private'] as const)
      expect(disposition(failed(code))).toBe('decided');
  });

  it('that failed is tried again as a job does it, also when it was refused by itself', () => {
    for (const entry of [FAILED.entry, REFUSED.entry])
      expect([0, 1, 2, 3].map((retries) => disposition(entry, { retries }))).toEqual([
        { retryAfterSeconds: 600, retries: 1 },
        { retryAfterSeconds: 3_600, retries: 2 },
        { retryAfterSeconds: 21_600, retries: 3 },
        'decided',
      ]);
  });

  it.each<[listed: Partial<Upload>, isDecided: boolean]>([
    [{ publishedAt: '2026-02-26T12:00:01Z' }, false],
    [{ publishedAt: '2026-02-26T12:00:00Z' }, true],
    [{ publishedText: '2 days ago' }, false],
    [{ publishedText: '3 days ago' }, true],
    [{ publishedAt: '2026-02-01T12:00:00Z' }, true],
    // The date is that of the announcement.
    [{ publishedAt: '2026-02-01T12:00:00Z', kind: 'upcoming' }, false],
    [{ publishedAt: '2026-02-01T12:00:00Z', kind: 'live' }, false],
  ])('that was listed with %j and has no captions is decided: %s', (listed, isDecided) => {
    const upload = { ...LISTED, ...listed };
    // The player of a past stream does not say that it was one.
    const entry = entryOf(
      upload,
      {
        ok: false,
        details: { ...NO_DETAILS, kind: 'video' },
        failure: { code: 'transcript_unavailable' },
      },
      false,
    );
    for (const retry of [archiveRetry, followedRetry]) {
      const conditions = { blocked: false, stopped: false, nowMs: NOW_MS, retry };
      expect(dispositionOf(video(entry, 0, false, upload), conditions) === 'decided').toBe(isDecided);
    }
  });

  it.each<[why: string, failure: Entry, options: Parameters<typeof disposition>[1]]>([
    ['the service knows that it is blocked', KNOWN_BLOCK.entry, {}],
    ['it was refused while the service is blocked', failed('upstream_blocked'), { blocked: true }],
    ['the service holds its requests back', failed('upstream_busy', 7), {}],
    ['the service gave it up itself', failed('upstream_timeout'), { givenUp: true }],
    ['the process stops', failed('upstream_timeout'), { stopped: true }],
  ])('stays pending without a try when %s', (_why, failure, options) => {
    expect(disposition(failure, { retries: 3, ...options })).toBe('untried');
  });
});

describe('the service is blocked', () => {
  it.each<[blocks: boolean, what: string, videos: ReadVideo[]]>([
    [true, 'it knows so', [CACHED, KNOWN_BLOCK]],
    [true, 'it found out so after other videos were refused', [REFUSED, FAILED, KNOWN_BLOCK]],
    [false, 'every video was refused by itself', [REFUSED, REFUSED, FAILED, CACHED]],
    [false, 'another video was fetched', [REFUSED, KNOWN_BLOCK, FETCHED]],
    [false, 'another video was judged', [REFUSED, KNOWN_BLOCK, video(failed('video_private'))]],
  ])('%s: %s', (blocks, _what, videos) => {
    expect(isBlocked(videos)).toBe(blocks);
  });
});

describe('a slice of videos', () => {
  it('is blocked while the service is', () => {
    expect(outcome([KNOWN_BLOCK])).toEqual({ type: 'blocked' });
  });

  it('was served when something was, and asked for nothing when only the cache served', () => {
    expect(outcome([KNOWN_BLOCK, FAILED, FETCHED])).toEqual({ type: 'served', seconds: 0 });
    expect(outcome([CACHED])).toEqual({ type: 'unserved' });
  });

  it('has failed when nothing was served, unless it was stopped', () => {
    for (const failure of [FAILED, REFUSED, video(failed('upstream_timeout'), 0, true)])
      expect(outcome([failure, CACHED])).toEqual({ type: 'failed' });
    expect(outcome([FAILED], { stopped: true })).toEqual({ type: 'stopped' });
  });

  it('states when the first video can be read that the service holds back', () => {
    const held = [video(failed('upstream_busy', 40)), video(failed('upstream_busy', 20))];
    expect(outcome(held)).toEqual({ type: 'busy', seconds: 17 });
    expect([0, 15, 25].map((durationSeconds) => outcome([...held, FETCHED], { durationSeconds }))).toEqual(
      [20, 5, 1].map((seconds) => ({ type: 'served', seconds })),
    );
  });
});

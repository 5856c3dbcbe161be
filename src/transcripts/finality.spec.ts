import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { VIDEO_FAILURE_CODES, VIDEO_FAILURES, type VideoFailureCode } from '../domain/transcript.js';
import {
  archiveRetry,
  failureLifetimeSeconds,
  followedRetry,
  uploadAgeSeconds,
  type FailedTry,
  type Retry,
} from './finality.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
const SOON = [600, HOUR, 6 * HOUR];

/** The pauses before the tries of a video that fails again and again, from an age at which it was found. */
function pauses(retry: (tried: FailedTry) => Retry | undefined, code: VideoFailureCode, foundAtAge?: number): number[] {
  const all: number[] = [];
  let [age, retries] = [foundAtAge, 0];
  for (;;) {
    const next = retry({ code, retries, lastCode: retries === 0 ? null : code, ageSeconds: age });
    if (!next) return all;
    all.push(next.retryAfterSeconds);
    retries = next.retries;
    if (age !== undefined) age += next.retryAfterSeconds;
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

describe('a subscription tries an upload again', () => {
  const NEW = ['transcript_unavailable', 'language_unavailable', 'video_unavailable', 'video_private'] as const;

  it.each(NEW)(
    'with %s until it is three days old, for three days when its age is unknown, and an older one never',
    (code) => {
      expect(pauses(followedRetry, code, 0)).toEqual([...SOON, DAY, DAY, DAY - sum(SOON)]);
      expect(pauses(followedRetry, code, 2 * DAY)).toEqual([...SOON, DAY - sum(SOON)]);
      expect(pauses(followedRetry, code)).toEqual([...SOON, DAY, DAY, DAY]);
      expect(pauses(followedRetry, code, 3 * DAY)).toEqual([]);
    },
  );

  it('that is for members daily for a week, then weekly to its 30th day', () => {
    const daily = Array<number>(7).fill(DAY);
    for (const age of [0, undefined])
      expect(pauses(followedRetry, 'video_members_only', age)).toEqual([...daily, WEEK, WEEK, WEEK, 2 * DAY]);
    expect(pauses(followedRetry, 'video_members_only', 20 * DAY)).toEqual([...daily, 3 * DAY]);
    expect(pauses(followedRetry, 'video_members_only', 30 * DAY)).toEqual([]);
  });

  it('that is announced for 400 days, live for 30, and refused for three, at any age', () => {
    for (const age of [undefined, 0, 500 * DAY]) {
      const days = (code: VideoFailureCode) => Math.floor(sum(pauses(followedRetry, code, age)) / DAY);
      expect([days('video_not_live_yet'), days('video_live'), days('upstream_failure')]).toEqual([400, 30, 3]);
      expect(pauses(followedRetry, 'video_live', age).slice(0, 4)).toEqual([...SOON, DAY]);
    }
  });

  it('never when it is for adults', () => {
    expect(pauses(followedRetry, 'video_age_restricted')).toEqual([]);
  });

  it.each<[before: VideoFailureCode, now: VideoFailureCode, pause: number, retries: number]>([
    ['video_not_live_yet', 'upstream_failure', 600, 1],
    ['video_not_live_yet', 'video_live', 600, 1],
    ['video_live', 'transcript_unavailable', 600, 1],
    ['video_members_only', 'upstream_timeout', 600, 1],
    ['upstream_failure', 'video_members_only', DAY, 1],
    ['video_private', 'transcript_unavailable', DAY, 6],
    ['upstream_timeout', 'upstream_failure', DAY, 6],
  ])('that was %s five times and is %s', (lastCode, code, retryAfterSeconds, retries) => {
    const next = followedRetry({ code, lastCode, retries: 5, ageSeconds: HOUR });
    expect(next).toEqual({ retryAfterSeconds, retries });
  });
});

describe('a job tries a video again', () => {
  it('three times while the failure can pass, and never when it is final or its age is unknown', () => {
    const ages = [0, 3 * DAY - 1, 3 * DAY, 30 * DAY - 1, 30 * DAY, undefined];
    const tries = (code: VideoFailureCode) =>
      ages.map((ageSeconds) => archiveRetry({ code, retries: 0, lastCode: null, ageSeconds }) !== undefined);
    for (const code of ['language_unavailable', 'video_private'] as const)
      expect(tries(code)).toEqual([true, true, false, false, false, false]);
    expect(tries('video_members_only')).toEqual([true, true, true, true, false, false]);
    expect(tries('upstream_failure')).toEqual(ages.map(() => true));
    expect(tries('video_age_restricted')).toEqual(ages.map(() => false));
    for (const code of ['language_unavailable', 'video_members_only', 'video_not_live_yet'] as const)
      expect(pauses(archiveRetry, code, 0)).toEqual(SOON);
  });

  it('not more often when the failure changes', () => {
    const tried = { retries: 3, lastCode: 'video_live', ageSeconds: 0 } as const;
    expect(archiveRetry({ ...tried, code: 'transcript_unavailable' })).toBeUndefined();
  });
});

describe('a failure is cached', () => {
  it.each<[age: string, seconds: number, lifetime: number]>([
    ['unknown', 0, HOUR],
    ['just below a day', DAY - 1, HOUR],
    ['a day', DAY, DAY],
    ['just below a week', WEEK - 1, DAY],
    ['a week', WEEK, WEEK],
    ['years', 900 * DAY, WEEK],
  ])('by the default configuration when the age is %s', (_age, age, lifetime) => {
    for (const code of ['transcript_unavailable', 'video_members_only', 'video_age_restricted'] as const)
      expect(failureLifetimeSeconds(code, HOUR, age)).toBe(lifetime);
  });

  it('exactly when it is not retryable, and longer with the age', () => {
    const ages = fc.tuple(fc.nat(20 * DAY), fc.nat(20 * DAY));
    fc.assert(
      fc.property(
        fc.constantFrom(...VIDEO_FAILURE_CODES),
        fc.integer({ min: 1 }),
        ages,
        (code, ttlSeconds, [one, other]) => {
          const [younger, older] = [Math.min(one, other), Math.max(one, other)];
          const lifetime = failureLifetimeSeconds(code, ttlSeconds, younger);
          expect(lifetime > 0).toBe(!VIDEO_FAILURES[code].retryable);
          expect(lifetime).toBeLessThanOrEqual(failureLifetimeSeconds(code, ttlSeconds, older));
        },
      ),
    );
  });
});

describe('the age of an upload', () => {
  const publishedAt = '2026-02-01T12:00:00Z';
  it.each<[Parameters<typeof uploadAgeSeconds>[0], age: number | undefined]>([
    [{ kind: 'video', publishedAt, publishedText: '2 days ago' }, 28 * DAY],
    [{ kind: null, publishedAt, publishedText: null }, 28 * DAY],
    [{ kind: null, publishedAt: null, publishedText: '2 days ago' }, 2 * DAY],
    [{ kind: null, publishedAt: null, publishedText: null }, undefined],
    // The date can be that of the announcement.
    [{ kind: 'video', publishedAt, publishedText: 'Streamed 2 days ago' }, 2 * DAY],
    [{ kind: 'live', publishedAt, publishedText: null }, 0],
    [{ kind: 'upcoming', publishedAt, publishedText: null }, 0],
  ])('listed with %j is %s seconds', (listed, age) => {
    expect(uploadAgeSeconds(listed, Date.parse('2026-03-01T12:00:00Z'))).toBe(age);
  });
});

import type { Upload, VideoFailureCode } from '../domain/transcript.js';
import { statedAgeSecondsMin, type PublishDates } from './cache/lifetimes.js';

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const WEEK_SECONDS = 7 * DAY_SECONDS;
const YOUNG_SECONDS = 3 * DAY_SECONDS;

/** The first pauses of a video or a list that is tried again, in seconds, and all of a job. */
export const RETRY_DELAYS_SECONDS = [600, HOUR_SECONDS, 6 * HOUR_SECONDS] as const;

/** How long a failure can pass, and when a subscription tries its video again. */
interface FinalityRule {
  /** From this age of its upload on it is final; Infinity for what can pass at any age. */
  finalFromSeconds: number;
  /** The pauses before the tries. After the last one it is final: the age can be unknown, or the text of its first day. */
  delaysSeconds: readonly number[];
}

const times = (count: number, seconds: number): number[] => Array<number>(count).fill(seconds);
const thenDaily = (days: number): number[] => [...RETRY_DELAYS_SECONDS, ...times(days, DAY_SECONDS)];

const THREE_DAYS = thenDaily(3);
const TEMPORARY: FinalityRule = { finalFromSeconds: Infinity, delaysSeconds: THREE_DAYS };
/** Captions are often generated hours after the upload, and an upload can be hidden or processed in its first minutes. */
const OF_NEW_UPLOADS: FinalityRule = { finalFromSeconds: YOUNG_SECONDS, delaysSeconds: THREE_DAYS };

/** Whether a failure is final depends on the age of the upload. docs/errors.md has the table for readers. */
const FINALITY: Readonly<Record<VideoFailureCode, FinalityRule>> = {
  transcript_unavailable: OF_NEW_UPLOADS,
  language_unavailable: OF_NEW_UPLOADS,
  video_unavailable: OF_NEW_UPLOADS,
  video_private: OF_NEW_UPLOADS,
  // "Members first": it opens to everybody later.
  video_members_only: {
    finalFromSeconds: 30 * DAY_SECONDS,
    delaysSeconds: [...times(7, DAY_SECONDS), ...times(3, WEEK_SECONDS), 2 * DAY_SECONDS],
  },
  video_age_restricted: { finalFromSeconds: 0, delaysSeconds: [] },
  // It can be announced far ahead.
  video_not_live_yet: { finalFromSeconds: Infinity, delaysSeconds: thenDaily(400) },
  video_live: { finalFromSeconds: Infinity, delaysSeconds: thenDaily(30) },
  upstream_blocked: TEMPORARY,
  upstream_busy: TEMPORARY,
  upstream_timeout: TEMPORARY,
  upstream_failure: TEMPORARY,
};

/** Of a stream or a premiere, whose date can be that of its announcement. */
const EVENT_TEXT = /^(?:streamed|premiered) /i;

/**
 * The age of an upload in seconds, at least: by its date, else by its text, which is as old as the list; undefined when neither
 * states it. What is listed as a stream is new.
 */
export function uploadAgeSeconds(
  { kind, publishedAt, publishedText }: Pick<Upload, 'kind'> & PublishDates,
  nowMs: number,
): number | undefined {
  if (kind === 'live' || kind === 'upcoming') return 0;
  const counts = publishedAt === null || EVENT_TEXT.test(publishedText ?? '');
  return statedAgeSecondsMin({ publishedAt, publishedText: counts ? publishedText : null }, nowMs);
}

export interface FailedTry {
  code: VideoFailureCode;
  /** How often it was tried again before. */
  retries: number;
  /** Its failure before; null for none. */
  lastCode: VideoFailureCode | null;
  /** The age of its upload, at least; undefined when nothing states it. */
  ageSeconds: number | undefined;
}

/** When a video is tried again, and how many tries that makes. */
export interface Retry {
  retryAfterSeconds: number;
  retries: number;
}

/**
 * When a subscription tries a video again; undefined when its failure is final. An upload of unknown age is new. The tries count
 * anew when it waits for something else: a stream that was awaited for weeks is not given up for the first failure of another kind.
 */
export function followedRetry({ code, lastCode, ageSeconds = 0, ...tried }: FailedTry): Retry | undefined {
  const { finalFromSeconds, delaysSeconds } = FINALITY[code];
  const waitsAsBefore = lastCode !== null && FINALITY[lastCode].delaysSeconds === delaysSeconds;
  const retries = waitsAsBefore ? tried.retries : 0;
  const delaySeconds = delaysSeconds[retries];
  if (delaySeconds === undefined || ageSeconds >= finalFromSeconds) return undefined;
  return { retryAfterSeconds: Math.min(delaySeconds, finalFromSeconds - ageSeconds), retries: retries + 1 };
}

/** When a job tries a video again; undefined when its failure is final. An upload of unknown age is old. A job waits for hours only. */
export function archiveRetry({ code, retries, ageSeconds }: FailedTry): Retry | undefined {
  const retryAfterSeconds = RETRY_DELAYS_SECONDS[retries];
  return canPass(code, ageSeconds) && retryAfterSeconds !== undefined
    ? { retryAfterSeconds, retries: retries + 1 }
    : undefined;
}

/** Whether a failure can pass, however often its video was tried. An upload of unknown age is old. */
export function canPass(code: VideoFailureCode, ageSeconds = Infinity): boolean {
  const { finalFromSeconds } = FINALITY[code];
  return finalFromSeconds === Infinity || ageSeconds < finalFromSeconds;
}

/**
 * How long a failure is cached for callers; 0 for what can pass at any age. As late as captions, what else can pass comes:
 * often within hours of the upload, seldom after a week.
 */
export function failureLifetimeSeconds(code: VideoFailureCode, ttlSeconds: number, ageSeconds: number): number {
  if (FINALITY[code].finalFromSeconds === Infinity) return 0;
  if (ageSeconds < DAY_SECONDS) return ttlSeconds;
  return ttlSeconds * (ageSeconds < WEEK_SECONDS ? 24 : 168);
}

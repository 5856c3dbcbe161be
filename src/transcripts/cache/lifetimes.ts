import type { Upload } from '../../domain/transcript.js';

/** What states when a video was published. */
export type PublishDates = Pick<Upload, 'publishedAt' | 'publishedText'>;

const DAY_SECONDS = 86_400;

/** The units of the texts that the platform shows, in seconds at their shortest. */
const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ...{ s: 1, m: 60, h: 3_600, d: DAY_SECONDS, w: 7 * DAY_SECONDS, mo: 28 * DAY_SECONDS, y: 365 * DAY_SECONDS },
};

const UNIT_SECONDS_MAX: typeof UNIT_SECONDS = { ...UNIT_SECONDS, mo: 31 * DAY_SECONDS, y: 366 * DAY_SECONDS };

const AGO = /^(Streamed |Premiered |Updated )?(\d{1,4}) ?(s|mo|m|h|d|w|y)[a-z]*\.? ago$/i;

/**
 * The age of a video in seconds, at least: by its date and by a text such as "4 months ago" or "Streamed 2mo ago", which
 * YouTube rounds down; the lower of both, because the date of a stream can be that of its announcement. Undefined when neither
 * states it.
 */
export function statedAgeSecondsMin({ publishedAt, publishedText }: PublishDates, nowMs: number): number | undefined {
  const byDate = (nowMs - Date.parse(publishedAt ?? '')) / 1000;
  const [, , count, unit = ''] = AGO.exec(publishedText ?? '') ?? [];
  const byText = Number(count) * (UNIT_SECONDS[unit.toLowerCase()] ?? NaN);
  const stated = [byDate, byText].filter((seconds) => !Number.isNaN(seconds));
  return stated.length === 0 ? undefined : Math.max(0, Math.min(...stated));
}

/** Whether a video was certainly published after a time. The text of a stream or a premiere does not say since when it is listed. */
export function isPublishedSince(dates: PublishDates, sinceMs: number, nowMs: number): boolean {
  if (dates.publishedAt !== null) return Date.parse(dates.publishedAt) > sinceMs;
  const [, event, count, unit = ''] = AGO.exec(dates.publishedText ?? '') ?? [];
  const ageSecondsMax = (Number(count) + 1) * (UNIT_SECONDS_MAX[unit.toLowerCase()] ?? NaN);
  return event === undefined && ageSecondsMax * 1000 <= nowMs - sinceMs;
}

/** The age, at least; 0 when neither states it. */
export function ageSecondsMin(dates: PublishDates, nowMs: number): number {
  return statedAgeSecondsMin(dates, nowMs) ?? 0;
}

/** How long a text is cached: the captions of a new video may still be replaced. */
export function textLifetimeSeconds(ttlSeconds: number, ageSeconds: number): number {
  return ageSeconds < 3 * DAY_SECONDS ? Math.min(ttlSeconds, DAY_SECONDS) : ttlSeconds;
}

/** How long it is cached that a video has no text: captions are often generated hours after the upload, seldom later. */
export function noTextLifetimeSeconds(ttlSeconds: number, ageSeconds: number): number {
  if (ageSeconds < DAY_SECONDS) return ttlSeconds;
  return ttlSeconds * (ageSeconds < 7 * DAY_SECONDS ? 24 : 168);
}

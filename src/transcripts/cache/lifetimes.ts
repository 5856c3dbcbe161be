import type { Upload } from '../../domain/transcript.js';

/** What states when a video was published. */
export type PublishDates = Pick<Upload, 'publishedAt' | 'publishedText'>;

const DAY_SECONDS = 86_400;

/** The units of the texts that the platform shows, in seconds at their shortest. */
const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ...{ s: 1, m: 60, h: 3_600, d: DAY_SECONDS, w: 7 * DAY_SECONDS, mo: 28 * DAY_SECONDS, y: 365 * DAY_SECONDS },
};

const UNIT_SECONDS_MAX: typeof UNIT_SECONDS = { ...UNIT_SECONDS, mo: 31 * DAY_SECONDS, y: 366 * DAY_SECONDS };

const AGO =
  /^(Streamed (?:live )?|Premiered |Updated )?(?:(\d{1,4}|an?) ?(s|mo|m|h|d|w|y)[a-z]*\.? ago|just now|today|(yesterday))$/i;

/** The age that a text states, in seconds: at least and at most, NaN for a text that is no age. `event`: a stream or premiere. */
function readAge(publishedText: string | null): { min: number; max: number; event: boolean } {
  const [text, event, number, unit = 'd', yesterday] = AGO.exec(publishedText ?? '') ?? [];
  if (text === undefined) return { min: NaN, max: NaN, event: false };
  // Days of the calendar: "yesterday" can be a minute ago.
  const days = yesterday === undefined ? 0 : 1;
  const count = number === undefined ? days : Number(number) || 1;
  const [shortest = NaN, longest = NaN] = [UNIT_SECONDS, UNIT_SECONDS_MAX].map((units) => units[unit.toLowerCase()]);
  const min = number === undefined ? 0 : count * shortest;
  return { min, max: (count + 1) * longest, event: event !== undefined };
}

/**
 * The age of a video in seconds, at least: by its date and by a text such as "4 months ago" or "Streamed 2mo ago", which
 * YouTube rounds down; the lower of both, because the date of a stream can be that of its announcement. Undefined when neither
 * states it.
 */
export function statedAgeSecondsMin({ publishedAt, publishedText }: PublishDates, nowMs: number): number | undefined {
  const byDate = (nowMs - Date.parse(publishedAt ?? '')) / 1000;
  const stated = [byDate, readAge(publishedText).min].filter((seconds) => !Number.isNaN(seconds));
  return stated.length === 0 ? undefined : Math.max(0, Math.min(...stated));
}

/** Whether a video was certainly published after a time. The text of a stream or a premiere does not say since when it is listed. */
export function isPublishedSince(dates: PublishDates, sinceMs: number, nowMs: number): boolean {
  if (dates.publishedAt !== null) return Date.parse(dates.publishedAt) > sinceMs;
  const { max, event } = readAge(dates.publishedText);
  return !event && max * 1000 <= nowMs - sinceMs;
}

/** Whether a video can have been published at a time or later: by its date, else by the age that its text rounds down. */
export function canBePublishedSince(dates: PublishDates, sinceMs: number, nowMs: number): boolean {
  if (dates.publishedAt !== null) return Date.parse(dates.publishedAt) >= sinceMs;
  const ageSeconds = statedAgeSecondsMin(dates, nowMs);
  return ageSeconds === undefined || nowMs - ageSeconds * 1000 >= sinceMs;
}

/** How long a text is cached: the captions of a new video may still be replaced. */
export function textLifetimeSeconds(ttlSeconds: number, ageSeconds: number): number {
  return ageSeconds < 3 * DAY_SECONDS ? Math.min(ttlSeconds, DAY_SECONDS) : ttlSeconds;
}

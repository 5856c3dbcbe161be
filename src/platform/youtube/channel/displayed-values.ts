/*
 * Readers of values that the platform displays as English text (requests set `hl=en`). An ambiguous value is null, never
 * guessed.
 */

const VIEWS = /^(\d{1,3}(?:,\d{3})+|\d{1,15})(\.\d{1,3})?([kmb])? views?$/i;
const TIMES: Readonly<Record<string, number>> = { k: 1e3, m: 1e6, b: 1e9 };

/**
 * Reads "1,234 views", "106k views", "1.2M views", "1 view" and "No views". An abbreviated count has the displayed
 * precision. Null for another grouping of digits ("1,23,456 views"), for viewers of a live stream and for other texts.
 */
export function readViewCount(text: string): number | null {
  if (/^no views$/i.test(text)) return 0;
  const [, whole, fraction, unit] = VIEWS.exec(text) ?? [];
  if (whole === undefined || (fraction !== undefined && unit === undefined)) return null;
  const count = Number(whole.replaceAll(',', '') + (fraction ?? '')) * (TIMES[unit?.toLowerCase() ?? ''] ?? 1);
  return Number.isSafeInteger(Math.round(count)) ? Math.round(count) : null;
}

/** Reads "0:45", "12:05" and "1:02:03" as seconds. */
export function readDurationSeconds(text: string): number | null {
  const [, hours, minutes, seconds] = /^(?:(\d{1,4}):(?=\d\d:))?([0-5]?\d):([0-5]\d)$/.exec(text) ?? [];
  if (minutes === undefined || seconds === undefined) return null;
  return Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(seconds);
}

const UNIT = 's|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|mo|mos|months?|y|yrs?|years?';
const AGO = new RegExp(`^(?:(?:Streamed|Premiered|Updated) )?\\d{1,4} ?(?:${UNIT})\\.? ago$`, 'i');

/** True for a publish date: "4 months ago", "Streamed 1 year ago", and the short forms "2mo ago" and "5 hr ago". */
export function isPublishedText(text: string): boolean {
  return AGO.test(text) || /^Premiered /.test(text);
}

/** True for an announcement: "Premieres 6/1/26, 8:00 PM", "Scheduled for …". */
export function isAnnouncementText(text: string): boolean {
  return /^(?:Premieres |Scheduled for |Upcoming$|Premiere$)/i.test(text);
}

/**
 * Converts an ISO 8601 time with an offset to UTC, to the second: `2015-01-27T21:14:36-08:00` becomes
 * `2015-01-28T05:14:36Z`. Null for a date without a time or an offset, which is not exact.
 */
export function readInstant(text: string): string | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)$/.test(text)) return null;
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

import { BASE_DATE } from '../catalogue/model.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Relative dates as the platform writes them: whole units, rounded down, weeks only up to a month. */
const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [365 * DAY, 'year'],
  [30 * DAY, 'month'],
  [7 * DAY, 'week'],
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
  [1, 'second'],
];

/** "4 months ago", relative to the base date of the catalogue. */
export function ageText(publishedAt: Date): string {
  const seconds = Math.max(1, Math.floor((BASE_DATE.getTime() - publishedAt.getTime()) / 1_000));
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, 'second'];
  return `${counted(Math.floor(seconds / size), name)} ago`;
}

/** "No views", "1 view", "812 views", "45K views", "1.2M views". */
export function viewsText(count: number): string {
  return count === 0 ? 'No views' : count === 1 ? '1 view' : `${abbreviated(count)} views`;
}

/** "36:24", "12:00:00". */
export function clockText(durationSeconds: number): string {
  const [hours, minutes, seconds] = parts(durationSeconds);
  const twoDigits = (number: number): string => String(number).padStart(2, '0');
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(seconds)}` : `${minutes}:${twoDigits(seconds)}`;
}

/** "36 minutes, 24 seconds". */
export function spokenDuration(durationSeconds: number): string {
  const [hours, minutes, seconds] = parts(durationSeconds);
  const named = [
    [hours, 'hour'],
    [minutes, 'minute'],
    [seconds, 'second'],
  ] as const;
  return named.flatMap(([count, name]) => (count > 0 ? [counted(count, name)] : [])).join(', ');
}

function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

function parts(durationSeconds: number): [hours: number, minutes: number, seconds: number] {
  return [Math.floor(durationSeconds / HOUR), Math.floor((durationSeconds % HOUR) / MINUTE), durationSeconds % MINUTE];
}

function abbreviated(count: number): string {
  if (count < 1_000) return String(count);
  const [size, letter] = count < 1_000_000 ? [1_000, 'K'] : [1_000_000, 'M'];
  const scaled = count / size;
  return `${scaled < 10 ? Math.floor(scaled * 10) / 10 : Math.floor(scaled)}${letter}`;
}

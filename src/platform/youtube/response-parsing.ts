/*
 * Readers of parsed JSON of unknown shape. They never throw: a value that is missing or of another type is null (or
 * undefined). Only own properties are read, so that a key such as `__proto__` finds nothing.
 */

import { VIDEO_ID } from '../../domain/references/video-reference.js';

/**
 * A response of the platform does not have the expected form. The only error that the parsers throw, for any input. The
 * message names what was expected; it is for the log, never for a caller.
 */
export class UnreadableError extends Error {
  constructor(readonly expected: string) {
    super(`Unreadable response: expected ${expected}.`);
    this.name = 'UnreadableError';
  }
}

/** A page without what every whole page has: the platform sends such a page now and then, and a whole one when asked again. */
export class IncompletePageError extends UnreadableError {}

type Key = string | number;

/** The value at a path of property names and array indices, or undefined. */
export function at(value: unknown, ...path: readonly Key[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<Key, unknown>)[key];
  }
  return current;
}

/** True for an object that is neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The elements of an array; empty for any other value. */
export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A string with more than white space, unchanged; null for any other value. */
export function asString(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}

/** The ID of a video; null for any other value. */
export function asVideoId(value: unknown): string | null {
  return typeof value === 'string' && VIDEO_ID.test(value) ? value : null;
}

/** A finite number, or a decimal string; null for any other value. */
export function asNumber(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  return typeof value === 'string' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : null;
}

/** A non-negative integer, also as a string. */
export function asCount(value: unknown): number | null {
  const number = asNumber(value);
  return number !== null && Number.isSafeInteger(number) && number >= 0 ? number : null;
}

/** The text in `{ simpleText }`, `{ runs: [{ text }] }` or `{ content }`, the three forms in pages. */
export function textOf(value: unknown): string | null {
  const runs = asArray(at(value, 'runs')).map((run) => at(run, 'text'));
  const joined = runs.filter((text) => typeof text === 'string').join('');
  return asString(at(value, 'simpleText')) ?? asString(at(value, 'content')) ?? asString(joined);
}

/** Text in lower case with straight apostrophes: the platform writes both kinds. */
export function plainWords(text: string): string {
  return text.replace(/[\u2018\u2019]/g, "'").toLowerCase();
}

/** The alerts of a page in either form; notices, such as about hidden videos, have the type INFO. */
export function alertsOf(page: unknown): { type: unknown; text: string | null }[] {
  return asArray(at(page, 'alerts')).map((alert) => {
    const renderer = at(alert, 'alertRenderer') ?? at(alert, 'alertWithButtonRenderer');
    return { type: at(renderer, 'type'), text: textOf(at(renderer, 'text')) };
  });
}

/** The actions and commands of a page: under `onResponseReceivedActions`, in other responses under `…Endpoints`. */
export function receivedActions(page: unknown): readonly unknown[] {
  return [...asArray(at(page, 'onResponseReceivedActions')), ...asArray(at(page, 'onResponseReceivedEndpoints'))];
}

/** The platform describes its own errors in words that also describe a removed resource: "temporarily unavailable". */
const TEMPORARY = /\btemporar|\btry again/;

/** Whether a page has an alert of type ERROR whose plain text matches and does not describe a temporary error. */
export function hasErrorAlert(page: unknown, words: RegExp): boolean {
  return alertsOf(page).some(({ type, text }) => {
    const plain = plainWords(text ?? '');
    return type === 'ERROR' && words.test(plain) && !TEMPORARY.test(plain);
  });
}

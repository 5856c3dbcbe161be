import type { Database } from './harness/database.js';

/** Something that is promised, and what was seen of it. */
export interface Promised {
  what: string;
  /** What was seen, with its unit, and what it was held against. */
  seen: string;
  held: boolean;
}

/** What a part did and found. */
export interface PartReport {
  title: string;
  /** What was done, in a sentence or two. */
  text: string;
  columns: readonly string[];
  rows: readonly (readonly (string | number)[])[];
  promised: readonly Promised[];
}

/** What every part is given. */
export interface ChaosRun {
  /** Less of everything, for a check of every change: a minute in all, instead of twenty. */
  short: boolean;
  /** Of all that is drawn by chance, so that a run can be repeated. */
  seed: number;
  /** For files; it is removed at the end. */
  folder: string;
  /** A PostgreSQL that parts share; a part that breaks one starts its own by `startDatabase`. */
  database: Database;
  /** Tells how far the part is. */
  say: (line: string) => void;
}

export type Part = (chaosRun: ChaosRun) => Promise<PartReport>;

/** A promise that holds when nothing was found against it; the first findings are told. */
export function nothing(what: string, found: readonly string[]): Promised {
  const shown = found.slice(0, 3).join('; ');
  return { what, seen: found.length === 0 ? '0' : `${found.length}: ${shown}`, held: found.length === 0 };
}

/** A promise that a figure stays within a bound. */
export function atMost(what: string, value: number, bound: number, unit: string): Promised {
  return { what, seen: `${round(value)} ${unit}, at most ${round(bound)}`, held: value <= bound };
}

/** A promise that two figures are the same. */
export function equal(what: string, seen: unknown, expected: unknown): Promised {
  const [one, other] = [JSON.stringify(seen), JSON.stringify(expected)];
  return { what, seen: one === other ? String(one) : `${one} instead of ${other}`, held: one === other };
}

export function round(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

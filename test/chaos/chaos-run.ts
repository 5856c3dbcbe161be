import type { Database } from './harness/database.js';

/** A guarantee that was checked, and the result. */
export interface Check {
  name: string;
  /** The observed value with its unit, and the value it was compared with. */
  observed: string;
  passed: boolean;
}

/** The parameters of every part. */
export interface ChaosRun {
  /** A reduced run for every change: some minutes in total, instead of more than twenty. */
  short: boolean;
  /** Seed of all random choices, so that a run can be repeated. */
  seed: number;
  /** A directory for files, removed at the end. */
  folder: string;
  /** A PostgreSQL shared by the parts; a part that injects faults into one starts its own with `startDatabase`. */
  database: Database;
  /** Logs progress. */
  say: (line: string) => void;
}

export type Part = (chaosRun: ChaosRun) => Promise<readonly Check[]>;

/** A check that passes when there are no findings; the first findings are reported. */
export function nothing(name: string, found: readonly string[]): Check {
  const shown = found.slice(0, 3).join('; ');
  return { name, observed: found.length === 0 ? '0' : `${found.length}: ${shown}`, passed: found.length === 0 };
}

/** A check that a value is at most `bound`. */
export function atMost(name: string, value: number, bound: number, unit: string): Check {
  return { name, observed: `${round(value)} ${unit}, at most ${round(bound)}`, passed: value <= bound };
}

/** A check that two values are equal. */
export function equal(name: string, observed: unknown, expected: unknown): Check {
  const [one, other] = [JSON.stringify(observed), JSON.stringify(expected)];
  return { name, observed: one === other ? String(one) : `${one} instead of ${other}`, passed: one === other };
}

export function round(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

import type { Promised } from '../../chaos-run.js';

/** What one of the ways to break the process came to. */
export interface Findings {
  rows: [what: string, seen: string][];
  promised: Promised[];
}

/** Sums of a customer's book over all its months, as `usage --verify` recomputes them. */
export interface Book {
  used: number;
  reserved: number;
  exact: boolean;
}

/** Reads what `/admin` tells of a customer, or what the command prints. */
export function bookOf(usage: unknown): Book {
  const { reserved, verification } = usage as {
    reserved: number;
    verification: { exact: boolean; periods: { used: number }[] };
  };
  return { used: verification.periods.reduce((sum, { used }) => sum + used, 0), reserved, exact: verification.exact };
}

/** Puts the quota's clock so far from the real one. */
export function quotaClock(offsetSeconds: number): string {
  return `CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + make_interval(secs => ${offsetSeconds})'`;
}

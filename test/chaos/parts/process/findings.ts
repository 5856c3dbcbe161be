import type { Check } from '../../chaos-run.js';

/** The result of one kind of fault of the process. */
export interface Findings {
  rows: [what: string, seen: string][];
  checks: Check[];
}

/** The usage of a customer over all months, as `usage --verify` recomputes it. */
export interface Book {
  used: number;
  reserved: number;
  exact: boolean;
}

/** Parses a customer's usage from `/admin` or from the output of the command. */
export function bookOf(usage: unknown): Book {
  const { reserved, verification } = usage as {
    reserved: number;
    verification: { exact: boolean; periods: { used: number }[] };
  };
  return { used: verification.periods.reduce((sum, { used }) => sum + used, 0), reserved, exact: verification.exact };
}

/** Sets the offset of the quota's clock from the real time. */
export function quotaClock(offsetSeconds: number): string {
  return `CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + make_interval(secs => ${offsetSeconds})'`;
}

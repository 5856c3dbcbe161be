import type { Plan } from '../domain/plan.js';

/** An organization's quota in the current calendar month (UTC); counts are transcripts. */
export interface Usage {
  /** The organization's id. */
  organization: string;
  plan: Plan;
  /** ISO 8601; `end` is the first moment of the next month. */
  period: { start: string; end: string };
  limit: number;
  used: number;
  /** Held by calls that are still running. */
  reserved: number;
  remaining: number;
  /** ISO 8601; only of an organization that was deleted. */
  deletedAt?: string;
}

/** The count of each month beside the sum of its settled calls. */
export interface Verification {
  /** Whether they agree in every month. */
  exact: boolean;
  periods: VerifiedPeriod[];
}

export interface VerifiedPeriod {
  /** `2026-05` */
  period: string;
  used: number;
  recomputed: number;
  /** Fetched, but settled too late to be charged. */
  forfeited: number;
  settledCalls: number;
}

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
  /** Reserved by running calls. */
  reserved: number;
  remaining: number;
  /** The current month and the five before, newest first, without those in which nothing was charged or that were pruned. */
  history: MonthUsed[];
  /** ISO 8601; only set for a deleted organization. */
  deletedAt?: string;
}

/** What was charged in a calendar month (UTC), in transcripts. */
export interface MonthUsed {
  /** `2026-05` */
  period: string;
  used: number;
}

/** The stored count of each month compared with the sum of its settled calls. */
export interface Verification {
  /** Whether both agree in every month. */
  exact: boolean;
  periods: VerifiedPeriod[];
}

export interface VerifiedPeriod {
  /** `2026-05` */
  period: string;
  used: number;
  recomputed: number;
  /** Transcripts that were fetched but settled too late to be charged. */
  forfeited: number;
  settledCalls: number;
}

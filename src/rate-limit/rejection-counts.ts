import { Injectable } from '@nestjs/common';

/** Why a request did not get past the gates. */
export const REJECTION_REASONS = [
  /** No API key came. */
  'no_key',
  /** One came and is not valid. */
  'invalid_key',
  /** An address that keeps failing to authenticate was held back. */
  'failing_address',
  /** A key called too often in a minute. */
  'key_per_minute',
  /** A key had too many calls in flight. */
  'key_in_flight',
  /** The process had too many calls in flight. */
  'process_in_flight',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/** Counts refusals at the gates in this process, for metrics. */
@Injectable()
export class RejectionCounts {
  private readonly counts = new Map<RejectionReason, number>(REJECTION_REASONS.map((event) => [event, 0]));

  count(event: RejectionReason): void {
    this.counts.set(event, this.of(event) + 1);
  }

  of(event: RejectionReason): number {
    return this.counts.get(event) ?? 0;
  }
}

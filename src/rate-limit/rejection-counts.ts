import { Injectable } from '@nestjs/common';

/** Why a request did not get past the gates. */
export const ACCESS_EVENTS = [
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
export type AccessEvent = (typeof ACCESS_EVENTS)[number];

/** Counts refusals at the gates in this process, for metrics. */
@Injectable()
export class AccessEvents {
  private readonly counts = new Map<AccessEvent, number>(ACCESS_EVENTS.map((event) => [event, 0]));

  count(event: AccessEvent): void {
    this.counts.set(event, this.of(event) + 1);
  }

  of(event: AccessEvent): number {
    return this.counts.get(event) ?? 0;
  }
}

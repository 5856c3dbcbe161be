import type { DataApiFailure } from './data-api-errors.js';

/** The failures after which the API is not asked for a while. */
export type RestReason = Exclude<DataApiFailure, 'declined'>;
export const REST_REASONS: readonly RestReason[] = ['quota', 'rate', 'refused', 'failed'];

/** Milliseconds; `quota` lasts until the units are granted anew. */
const REST_MS: Readonly<Record<Exclude<RestReason, 'quota'>, number>> = {
  rate: 60_000,
  refused: 600_000,
  failed: 120_000,
};

/** Decides when the Data API is asked again after a failure. */
export class DataApiRest {
  private untilMs = 0;
  private current: RestReason | null = null;

  /**
   * @param onRest called when a rest begins for another reason than the last one
   * @param onBack called with the first answer after a rest
   * @param now milliseconds since the epoch
   */
  constructor(
    private readonly onRest: (reason: RestReason, detail: string, restSeconds: number) => void = () => undefined,
    private readonly onBack: () => void = () => undefined,
    private readonly now: () => number = Date.now,
  ) {}

  /** Why the API is replaced: from a failure to its next answer, also while it is tried again. Null while it works. */
  get reason(): RestReason | null {
    return this.current;
  }

  /** Whether no request should be sent now. */
  get resting(): boolean {
    return this.now() < this.untilMs;
  }

  /** Starts a rest. @param detail the reason that the API stated */
  rest(reason: RestReason, detail: string): void {
    const nowMs = this.now();
    const untilMs = reason === 'quota' ? nextPacificMidnight(nowMs) : nowMs + REST_MS[reason];
    // Requests that were sent at the same time fail for several reasons; the longest rest stays.
    if (this.resting && untilMs <= this.untilMs) return;
    this.untilMs = untilMs;
    if (this.current === reason) return;
    this.current = reason;
    this.onRest(reason, detail, Math.ceil((untilMs - nowMs) / 1000));
  }

  /** The API answered. */
  answered(): void {
    // The answer to an earlier request does not end a rest.
    if (this.current === null || this.resting) return;
    this.current = null;
    this.onBack();
  }
}

const PACIFIC = new Intl.DateTimeFormat('en-US', {
  ...{ timeZone: 'America/Los_Angeles', hourCycle: 'h23' },
  ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric' },
});
const HOUR_MS = 3_600_000;

/**
 * The next midnight in Pacific time, when the quota of a day begins, in milliseconds since the epoch. Daylight saving time
 * changes at two o'clock, so every day has exactly one midnight.
 */
export function nextPacificMidnight(nowMs: number): number {
  const { year, month, day } = pacificTime(nowMs);
  // Pacific time is 7 or 8 hours behind UTC.
  const candidates = [7, 8].map((hours) => Date.UTC(year, month - 1, day + 1) + hours * HOUR_MS);
  return candidates.find((atMs) => pacificTime(atMs).hour === 0) ?? nowMs + 24 * HOUR_MS;
}

function pacificTime(atMs: number): Record<'year' | 'month' | 'day' | 'hour', number> {
  const parts = PACIFIC.formatToParts(atMs);
  const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts.find((each) => each.type === type)?.value);
  return { year: part('year'), month: part('month'), day: part('day'), hour: part('hour') };
}

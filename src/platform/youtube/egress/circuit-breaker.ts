/** This many different videos (or channels) refused in a row, with no success in between, mean that the egress is blocked. */
export const BLOCKS_TO_OPEN = 5;

/** When a breaker opens and for how long. */
export interface BreakerLimits {
  /** Different subjects refused in a row, with no success in between, that open it. */
  readonly blocksToOpen: number;
  readonly openFirstMs: number;
  readonly openMaxMs: number;
}

const EGRESS_LIMITS: BreakerLimits = { blocksToOpen: BLOCKS_TO_OPEN, openFirstMs: 30_000, openMaxMs: 600_000 };

/** Permission to use the egress, and the result of using it. Only the first reported result counts. */
export interface Admission {
  /** Admitted to find out whether the block has ended: send as little as possible. */
  readonly probe: boolean;
  /** Whether the breaker opened since: requests that were not sent yet should not be sent. */
  isObsolete(): boolean;
  /** The platform responded, whatever the response was. */
  succeeded(): void;
  /** The platform refused. @param subject the video or channel; each counts once */
  blocked(subject: string): void;
  /** Nothing was learned: a timeout, or the caller disconnected. */
  abandoned(): void;
}

/**
 * Stops requests while the platform refuses all of them: more requests make a block last longer. While open it admits
 * nothing; after a pause it admits one probe, and closes when the probe succeeds. Each failed probe doubles the pause.
 */
export class CircuitBreaker {
  private readonly blockedSubjects = new Set<string>();
  private openUntilMs: number | null = null;
  private pauseMs: number;
  private probing = false;

  /**
   * @param now milliseconds of a monotonic clock
   * @param onChange called when it opens (with the pause in milliseconds) and when it closes (with null)
   */
  constructor(
    private readonly now: () => number,
    private readonly onChange: (openForMs: number | null) => void = () => undefined,
    private readonly limits: BreakerLimits = EGRESS_LIMITS,
  ) {
    this.pauseMs = limits.openFirstMs;
  }

  get open(): boolean {
    return this.openUntilMs !== null;
  }

  /** Whether nothing is admitted now. */
  get blocked(): boolean {
    return this.openUntilMs !== null && (this.probing || this.now() < this.openUntilMs);
  }

  /** Null while nothing may be sent. Every admission must report a result, or no probe ever follows an unfinished one. */
  admit(): Admission | null {
    if (this.openUntilMs === null) return this.admission(false);
    if (this.blocked) return null;
    this.probing = true;
    return this.admission(true);
  }

  private admission(probe: boolean): Admission {
    let ended = false;
    const end = (then: () => void) => () => {
      if (ended) return;
      ended = true;
      if (probe) this.probing = false;
      then();
    };
    return {
      probe,
      isObsolete: () => !probe && this.open,
      succeeded: end(() => this.close()),
      blocked: (subject) => end(() => this.count(subject, probe))(),
      abandoned: end(() => undefined),
    };
  }

  private close(): void {
    this.blockedSubjects.clear();
    this.pauseMs = this.limits.openFirstMs;
    if (this.openUntilMs === null) return;
    this.openUntilMs = null;
    this.onChange(null);
  }

  private count(subject: string, probe: boolean): void {
    // Requests in flight when it opened were refused for the same reason.
    if (this.openUntilMs !== null && !probe) return;
    this.blockedSubjects.add(subject);
    if (!probe && this.blockedSubjects.size < this.limits.blocksToOpen) return;
    if (probe) this.pauseMs = Math.min(this.limits.openMaxMs, this.pauseMs * 2);
    this.openUntilMs = this.now() + this.pauseMs;
    this.blockedSubjects.clear();
    this.onChange(this.pauseMs);
  }
}

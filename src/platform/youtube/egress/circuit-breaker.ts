/** So many different videos (or channels) refused in a row, with no answer between, is a block of the exit. */
export const BLOCKS_TO_OPEN = 5;
const OPEN_FIRST_MS = 30_000;
const OPEN_MAX_MS = 600_000;

/** Work that was let through, and what came of it. The first call counts; the later ones do nothing. */
export interface Admission {
  /** Let through to see whether the platform answers again: as little as possible should be sent. */
  readonly probe: boolean;
  /** Whether the breaker opened after this was let through: what was not sent yet should not be. */
  isObsolete(): boolean;
  /** The platform answered, whatever the answer was. */
  succeeded(): void;
  /** The platform refused. @param subject what was asked for; the same one twice counts once */
  blocked(subject: string): void;
  /** Nothing was learnt: a timeout, a caller who left. */
  abandoned(): void;
}

/**
 * Stops asking where every answer is a refusal: more requests make a block last longer. Open, it admits nothing; after
 * a while it admits one piece of work to see, and closes when that is answered. The pause doubles each time it is not.
 */
export class CircuitBreaker {
  private readonly blockedSubjects = new Set<string>();
  private openUntilMs: number | null = null;
  private pauseMs = OPEN_FIRST_MS;
  private probing = false;

  /**
   * @param now milliseconds of a clock that only goes forward
   * @param onChange told when it opens (with the pause in milliseconds) and when it closes (with null)
   */
  constructor(
    private readonly now: () => number,
    private readonly onChange: (openForMs: number | null) => void = () => undefined,
  ) {}

  get open(): boolean {
    return this.openUntilMs !== null;
  }

  /** True while nothing would be admitted. */
  get blocked(): boolean {
    return this.openUntilMs !== null && (this.probing || this.now() < this.openUntilMs);
  }

  /** Null while nothing may be sent. Every admission has to be ended, or a probe is never followed by another. */
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
    this.pauseMs = OPEN_FIRST_MS;
    if (this.openUntilMs === null) return;
    this.openUntilMs = null;
    this.onChange(null);
  }

  private count(subject: string, probe: boolean): void {
    // What was under way when it opened tells nothing new.
    if (this.openUntilMs !== null && !probe) return;
    this.blockedSubjects.add(subject);
    if (!probe && this.blockedSubjects.size < BLOCKS_TO_OPEN) return;
    if (probe) this.pauseMs = Math.min(OPEN_MAX_MS, this.pauseMs * 2);
    this.openUntilMs = this.now() + this.pauseMs;
    this.blockedSubjects.clear();
    this.onChange(this.pauseMs);
  }
}

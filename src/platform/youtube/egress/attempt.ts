/** What an egress is used for. The platform may refuse one use and not the other. */
export const EGRESS_USES = ['channel', 'video'] as const;
export type UseName = (typeof EGRESS_USES)[number];

/** One reading of a channel or video through one egress, to which requests belong. */
export class Attempt {
  /** Whether a request of it was sent, so that the later ones go first. */
  started = false;
  /** When its last request was sent, in milliseconds of `performance.now()`. */
  sentAtMs = -Infinity;
  /** For how long its requests ran. */
  slotSeconds = 0;

  /**
   * @param subject the channel or video
   * @param role `control`: finds out whether an egress is refused, so nothing holds it back. `optional`: belongs to an attempt
   *   that has started and changes nothing when it is refused.
   */
  constructor(
    readonly subject: string,
    readonly role: 'wanted' | 'optional' | 'control' = 'wanted',
  ) {
    this.started = role !== 'wanted';
  }
}

/**
 * How an attempt ended for its egress; all but `answered` lead to another egress. `refused`: the platform refuses the address.
 * `unreached`: no response of the platform arrived. `busy`: it cannot serve the attempt before the deadline. `restricted`: the
 * video is not available in its country.
 */
export const ATTEMPT_ENDS = ['answered', 'refused', 'unreached', 'busy', 'restricted'] as const;
export type AttemptEnd = (typeof ATTEMPT_ENDS)[number];

/** The retries that all requests for one video or one list share. */
export class RetryBudget {
  constructor(private remaining: number) {}

  /** Uses one retry; false when none remains. */
  take(): boolean {
    if (this.remaining <= 0) return false;
    this.remaining -= 1;
    return true;
  }
}

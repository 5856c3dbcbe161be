import { StoredEgressState } from './stored-egress-state.js';
import type { PacedKind } from './egress-state.js';

/** This many different videos (or channels) refused in a row, with no success in between, mean that the egress is blocked. */
export const BLOCKS_TO_OPEN = 5;
/** The same for an egress that was blocked before, whose refusals are likelier to be another block. */
export const BLOCKS_TO_OPEN_AGAIN = 2;
/** Addresses of a gateway are refused one by one: a client is refused through it when nearly all of this many attempts were. */
const SHARE_ATTEMPTS = 50;
/**
 * The same for the gateway itself. Refused attempts end before served ones, which still request captions, so that the first
 * results of a call for a hundred videos are refusals: fewer attempts would block a gateway with 60 % of bad addresses.
 */
export const GATEWAY_SHARE_ATTEMPTS = 200;
const SHARE_TO_OPEN = 0.95;

/**
 * The first pause after 429, a captcha or another page that refuses the address: the five minutes that are reported, and
 * what the requests in flight may add to them.
 */
const ADDRESS_PAUSE_MS = 330_000;

/** When a breaker opens and for how long. */
export interface BreakerLimits {
  /** Different subjects refused in a row that open it; a breaker with another `RefusalRule` ignores it. */
  readonly blocksToOpen: number;
  readonly openFirstMs: number;
  readonly openMaxMs: number;
  /** Whether the first pause is as long as the last block was; default: no. */
  readonly remembersBlocks?: boolean;
}

const DEFAULT_LIMITS: BreakerLimits = { blocksToOpen: BLOCKS_TO_OPEN, openFirstMs: 30_000, openMaxMs: 3_600_000 };

/** Those of an egress. The first pause is that after bot checks and withheld texts. */
export const EGRESS_LIMITS: BreakerLimits = { ...DEFAULT_LIMITS, remembersBlocks: true };

/** Why the platform refused, as far as it decides about the pause. */
export interface Refusal {
  /** The address was refused (429, captcha, …), not one client or one video. */
  address: boolean;
  /** From the platform's `Retry-After`; it takes precedence over every other pause. */
  retryAfterSeconds: number | null;
  /** The requests whose rate was too high; null when the refusal says nothing about a rate. */
  by: PacedKind | null;
}

const UNKNOWN_REFUSAL: Refusal = { address: false, retryAfterSeconds: null, by: null };

/** Permission to use the egress, and the result of using it. Only the first reported result counts. */
export interface Admission {
  /** Its result, which is not reported yet, decides whether the block has ended: send as little as possible. */
  readonly probe: boolean;
  /**
   * Claims the probe, so that no other replica sends one until it has ended. An admission that is no probe becomes one when
   * the breaker opened since and its pause has ended.
   *
   * @param forMs until the deadline of the probe
   * @returns whether it may be sent as a probe
   */
  claimProbe(forMs: number): Promise<boolean>;
  /** Whether the breaker opened since: requests that were not sent yet should not be sent. */
  isObsolete(): boolean;
  /** The platform responded, whatever the response was. */
  succeeded(): void;
  /** The platform refused. @param subject the video or channel; each counts once */
  blocked(subject: string, refusal?: Refusal): void;
  /** Nothing was learned: a timeout, or the caller disconnected. */
  abandoned(): void;
}

/**
 * Lets one of the replicas probe an egress.
 *
 * @param forMs until the deadline of the probe
 * @returns to be called when the probe has ended; null while another replica probes it
 */
export type ClaimProbe = (forMs: number) => Promise<(() => Promise<void>) | null>;

const UNSHARED_PROBES: ClaimProbe = () => Promise.resolve(() => Promise.resolve());

/** Decides from the results of attempts whether an egress is blocked. */
export interface RefusalRule {
  /** @returns whether the egress is blocked */
  refused(subject: string): boolean;
  succeeded(): void;
  reset(): void;
}

/** Blocked when several different subjects were refused in a row. */
export function refusedInARow(blocksToOpen: number | (() => number) = BLOCKS_TO_OPEN): RefusalRule {
  const subjects = new Set<string>();
  return {
    refused: (subject) =>
      subjects.add(subject).size >= (typeof blocksToOpen === 'number' ? blocksToOpen : blocksToOpen()),
    succeeded: () => subjects.clear(),
    reset: () => subjects.clear(),
  };
}

/** Blocked when nearly all of the last attempts were refused. */
export function refusedShare(attempts = SHARE_ATTEMPTS): RefusalRule {
  let refusals: boolean[] = [];
  const add = (refused: boolean) => {
    refusals = [...refusals.slice(1 - attempts), refused];
  };
  return {
    refused: () => {
      add(true);
      return refusals.length === attempts && refusals.filter(Boolean).length > SHARE_TO_OPEN * attempts;
    },
    succeeded: () => add(false),
    reset: () => {
      refusals = [];
    },
  };
}

/**
 * Stops requests while the platform refuses all of them: more requests make a block last longer. While open it admits
 * nothing; after a pause it admits one probe, and closes when the probe succeeds. Each failed probe doubles the pause.
 */
export class CircuitBreaker {
  private probing = false;

  /**
   * @param now milliseconds of a monotonic clock
   * @param onChange called when it opens (with the pause in milliseconds) and when it closes (with null)
   * @param rule when results of attempts mean that the egress is blocked
   * @param stored the pause, which other replicas may share
   * @param claimProbe claims a probe, which other replicas may share
   */
  constructor(
    private readonly now: () => number,
    private readonly onChange: (openForMs: number | null) => void = () => undefined,
    private readonly limits: BreakerLimits = DEFAULT_LIMITS,
    private readonly rule: RefusalRule = refusedInARow(limits.blocksToOpen),
    private readonly stored = new StoredEgressState(),
    private readonly claimProbe: ClaimProbe = UNSHARED_PROBES,
  ) {
    stored.whenPauseAdopted(() => {
      this.rule.reset();
      this.onChange(this.open ? this.pauseRemainingMs : null);
    });
  }

  get open(): boolean {
    return this.stored.pause.openedAtMs !== null;
  }

  /** Whether nothing is admitted now. */
  get blocked(): boolean {
    return this.open && (this.probing || this.pauseRemainingMs > 0);
  }

  /** Milliseconds until a probe is admitted; 0 when one may be sent, and while it is closed. */
  get pauseRemainingMs(): number {
    return this.open ? Math.max(0, this.stored.pause.untilMs - this.now()) : 0;
  }

  /** End of the current pause, in milliseconds of the clock; 0 while closed. */
  get pausedUntilMs(): number {
    return this.stored.pause.untilMs;
  }

  /** Null while nothing may be sent. Every admission must report a result, or no probe ever follows an unfinished one. */
  admit(): Admission | null {
    if (!this.open) return this.admission(false);
    if (this.blocked) return null;
    this.probing = true;
    return this.admission(true);
  }

  /** Opens at once. Refusals of requests that were sent before it opened belong to the same block. */
  refuse({ address, retryAfterSeconds, by }: Refusal): void {
    if (this.open) return;
    const { openFirstMs, openMaxMs, remembersBlocks = false } = this.limits;
    const firstMs = retryAfterSeconds === null ? (address ? ADDRESS_PAUSE_MS : openFirstMs) : retryAfterSeconds * 1000;
    const pauseMs = Math.min(openMaxMs, firstMs);
    this.rule.reset();
    const exactly = retryAfterSeconds !== null || !remembersBlocks;
    this.stored.record({ kind: 'opened', atMs: this.now(), pauseMs, exactly, by });
    this.onChange(this.stored.pause.pauseMs);
  }

  private admission(admittedAsProbe: boolean): Admission {
    let probe = admittedAsProbe;
    let sincePause = this.stored.pause.openedAtMs;
    let release: (() => Promise<void>) | null = null;
    let claiming: Promise<boolean> | null = null;
    let ended = false;
    const end = (then: () => void) => {
      if (ended) return;
      ended = true;
      if (probe) this.probing = false;
      then();
      void release?.();
    };
    const claim = async (forMs: number): Promise<boolean> => {
      // Set before the claim is granted, so that this process sends no second probe.
      this.probing = true;
      const granted = await this.claimProbe(forMs);
      if (!granted || ended) {
        if (!probe) this.probing = false;
        void granted?.();
        return false;
      }
      release = granted;
      probe = true;
      sincePause = this.stored.pause.openedAtMs;
      return true;
    };
    const claimProbe = (forMs: number): Promise<boolean> => {
      if (ended || release) return Promise.resolve(!ended);
      // Several requests of one attempt, such as two caption tracks, ask at the same time.
      if (claiming) return claiming;
      if (!probe && (!this.open || this.blocked)) return Promise.resolve(false);
      claiming = claim(forMs).finally(() => {
        claiming = null;
      });
      return claiming;
    };
    return {
      get probe() {
        return probe && !ended;
      },
      claimProbe,
      isObsolete: () => (!probe || ended) && this.open,
      succeeded: () => end(() => this.succeeded(probe && sincePause === this.stored.pause.openedAtMs)),
      blocked: (subject, refusal = UNKNOWN_REFUSAL) => end(() => this.blockedBy(subject, probe, refusal)),
      abandoned: () => end(() => undefined),
    };
  }

  /** A success of a request that was sent before it opened says nothing about the block. */
  private succeeded(probe: boolean): void {
    this.rule.succeeded();
    if (!probe || !this.open) return;
    this.stored.record({ kind: 'closed', atMs: this.now() });
    this.onChange(null);
  }

  private blockedBy(subject: string, probe: boolean, refusal: Refusal): void {
    if (probe && this.open) {
      const { retryAfterSeconds } = refusal;
      const nextMs = retryAfterSeconds === null ? this.stored.pause.pauseMs * 2 : retryAfterSeconds * 1000;
      const pauseMs = Math.min(this.limits.openMaxMs, nextMs);
      this.stored.record({ kind: 'reopened', atMs: this.now(), pauseMs });
      this.onChange(this.stored.pause.pauseMs);
    } else if (!this.open && this.rule.refused(subject)) this.refuse(refusal);
  }
}

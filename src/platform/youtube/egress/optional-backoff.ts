import { isHardRefusal, type NotSent, type UpstreamResponse } from './upstream-response.js';

const PAUSE_FIRST_MS = 60_000;
const PAUSE_MAX_MS = 3_600_000;

/**
 * Optional requests (the feed, the list of Shorts, exact dates) that the platform refuses an egress are not sent for a minute,
 * then twice as long, up to an hour. By kind of request; nothing else is affected.
 */
export class OptionalBackoff {
  private readonly pauses = new Map<string, { ms: number; untilMs: number }>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Why a request is not sent now; null when it may be. */
  refusal(kind: string): NotSent | null {
    const remainingMs = (this.pauses.get(kind)?.untilMs ?? 0) - this.now();
    if (remainingMs <= 0) return null;
    return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: Math.ceil(remainingMs / 1_000) };
  }

  learn(kind: string, response: UpstreamResponse): void {
    if (response.kind === 'ok') this.pauses.delete(kind);
    if (!isHardRefusal(response) && !(response.kind === 'blocked' && response.reason === 'forbidden')) return;
    // Refusals of requests that were sent before the pause are the same refusal.
    if (this.refusal(kind)) return;
    const ms = Math.min(PAUSE_MAX_MS, (this.pauses.get(kind)?.ms ?? PAUSE_FIRST_MS / 2) * 2);
    this.pauses.set(kind, { ms, untilMs: this.now() + ms });
  }
}

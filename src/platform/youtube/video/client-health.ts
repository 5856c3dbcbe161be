import type { YoutubeClient } from '../../../config/environment.js';
import { type Admission, CircuitBreaker } from '../egress/circuit-breaker.js';
import type { Egress } from '../egress/egress-pool.js';

/** A client to try and, unless it is cooling down, the admission whose result must be reported. */
export interface ClientCandidate {
  client: YoutubeClient;
  admission: Admission | null;
}

/**
 * Tracks for each egress which clients were refused for five videos in a row (a bot check, a PO token). Such a client moves
 * to the end of the fallback order, so that it does not cost a request per video; after a pause one video tries it first
 * again. It follows the rule of a circuit breaker, but blocks nothing: the last candidates are still tried.
 */
export class ClientHealth {
  private readonly breakers = new WeakMap<Egress, Map<YoutubeClient, CircuitBreaker>>();

  /** @param onCooldown called when a client moves to the end (with the pause in milliseconds) and back (with null) */
  constructor(
    private readonly clients: readonly YoutubeClient[],
    private readonly onCooldown: (egress: Egress, client: YoutubeClient, cooldownMs: number | null) => void = () =>
      undefined,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * The clients in the order in which a video tries them. The caller must report the result of each candidate. A client is
   * admitted only when the generator reaches it.
   */
  *candidates(egress: Egress): Generator<ClientCandidate, void, undefined> {
    const breakers = this.clients.map((client) => ({ client, breaker: this.breaker(egress, client) }));
    const coolingDown = new Set<YoutubeClient>();
    for (const { client, breaker } of breakers) {
      const admission = breaker.admit();
      if (admission) yield { client, admission };
      else coolingDown.add(client);
    }
    for (const client of coolingDown) yield { client, admission: null };
  }

  private breaker(egress: Egress, client: YoutubeClient): CircuitBreaker {
    const byClient = this.breakers.get(egress) ?? new Map<YoutubeClient, CircuitBreaker>();
    this.breakers.set(egress, byClient);
    const known = byClient.get(client);
    if (known) return known;
    const created = new CircuitBreaker(this.now, (cooldownMs) => this.onCooldown(egress, client, cooldownMs));
    byClient.set(client, created);
    return created;
  }
}

import type { YoutubeClient } from '../../../config/environment.js';
import { type Admission, CircuitBreaker } from '../egress/circuit-breaker.js';
import type { Egress } from '../egress/egress-pool.js';

/** A client and, unless it rests, the admission that has to be ended with what came of asking it. */
export interface ClientCandidate {
  client: YoutubeClient;
  admission: Admission | null;
}

/**
 * Remembers for each exit which clients were refused for five videos in a row (a bot check, a PO token): such a client
 * rests at the end of the ladder, so that it does not cost a request for every video, and is tried first again by one
 * video after a while. The rule is that of a breaker, but nothing is shut: the end of the ladder is still reached.
 */
export class ClientHealth {
  private readonly breakers = new WeakMap<Egress, Map<YoutubeClient, CircuitBreaker>>();

  /** @param onCooldown told when a client goes to the end (with the pause in milliseconds) and when it is back (with null) */
  constructor(
    private readonly clients: readonly YoutubeClient[],
    private readonly onCooldown: (egress: Egress, client: YoutubeClient, restMs: number | null) => void = () =>
      undefined,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * The clients in the order in which one video should ask them. What is taken of it has to be ended; a client is only
   * admitted when its turn comes, so that one that is not needed owes nothing.
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
    const made = new CircuitBreaker(this.now, (restMs) => this.onCooldown(egress, client, restMs));
    byClient.set(client, made);
    return made;
  }
}

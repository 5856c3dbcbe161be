import { Gauge, type Registry } from 'prom-client';
import type { YoutubeClient } from '../../../config/environment.js';
import { type Admission, type BreakerLimits, CircuitBreaker } from '../egress/circuit-breaker.js';
import type { ParsedResponse } from '../innertube/innertube-client.js';
import type { PlayerReading } from './player-response.js';

/** Readings that a retired client does not get. Retired ones get `unavailable`, too. */
const SERVED: ReadonlySet<PlayerReading['kind']> = new Set([
  'tracks',
  'no-captions',
  'private',
  'members-only',
  'age-restricted',
  'live',
  'upcoming',
]);

/** What a response says about the version of its client; null for nothing. */
export function versionSupport(response: ParsedResponse<PlayerReading>): 'served' | 'retired' | null {
  if (response.kind === 'parsed') {
    const { kind } = response.value;
    if (kind === 'client-retired') return 'retired';
    return SERVED.has(kind) ? 'served' : null;
  }
  // A JSON error of status 400 rejects the request itself, of which only the video differs between videos.
  return response.kind === 'http-error' && response.status === 400 && response.media === 'json' ? 'retired' : null;
}

/** Versions age over weeks, and a service with traffic reads a video in every hour. */
const SERVED_RECENTLY_MS = 3_600_000;

/** One odd response must not disable a client that works, so three different videos in a row have to show it. */
const LIMITS: BreakerLimits = { blocksToOpen: 3, openFirstMs: 10 * 60_000, openMaxMs: 6 * 3_600_000 };

/** How the caller reports what the platform did with a client's version. Only the first report counts. */
export type VersionResult = Pick<Admission, 'succeeded' | 'blocked' | 'abandoned'>;

/**
 * Disables clients whose version the platform no longer serves, for all videos and egresses of the process: a newer version
 * is a matter of configuration (`YOUTUBE_CLIENT_OVERRIDES`) or of a release, so asking again costs a request a video and
 * returns nothing. One video at a time probes a disabled client after 10 minutes, doubling to 6 hours. While all are disabled
 * each video asks one of them in turn: videos that every client reports in the words of a retired one must not stop the others.
 */
export class RetiredClients {
  private readonly breakers = new Map<YoutubeClient, CircuitBreaker>();
  private readonly servedAtMs = new Map<YoutubeClient, number>();
  private turn = 0;

  /**
   * @param clients the fallback order
   * @param onChange called when a client is disabled (with the time until its first probe) and when it is served again (with null)
   */
  constructor(
    private readonly clients: readonly YoutubeClient[],
    registry: Registry,
    private readonly onChange: (client: YoutubeClient, probeAfterMs: number | null) => void,
    private readonly now: () => number = () => performance.now(),
  ) {
    const isRetired = (client: YoutubeClient) => this.breaker(client).open;
    new Gauge({
      name: 'ct_upstream_client_retired',
      help: '1 while an InnerTube client is disabled because the platform no longer serves its version.',
      labelNames: ['client'],
      registers: [registry],
      collect() {
        for (const client of clients) this.set({ client }, Number(isRetired(client)));
      },
    });
  }

  /** Permission to use a client, whose result the caller must report; null while the client is disabled. */
  admit(client: YoutubeClient): VersionResult | null {
    const admission = this.breaker(client).admit();
    if (!admission) return null;
    const succeeded = () => {
      this.servedAtMs.set(client, this.now());
      admission.succeeded();
    };
    return {
      succeeded,
      blocked: (...report) => admission.blocked(...report),
      abandoned: () => admission.abandoned(),
    };
  }

  /** Whether the platform served the client's version within the last hour. */
  isServed(client: YoutubeClient): boolean {
    const atMs = this.servedAtMs.get(client);
    return atMs !== undefined && this.now() - atMs < SERVED_RECENTLY_MS;
  }

  /** The disabled client that a video asks while all are disabled; null otherwise. */
  admitDisabled(): { client: YoutubeClient; admission: null; version: VersionResult } | null {
    const client = this.clients[this.turn % this.clients.length];
    if (client === undefined || !this.clients.every((each) => this.breaker(each).blocked)) return null;
    this.turn += 1;
    const ignored = () => undefined;
    const version = { succeeded: () => this.reinstate(client), blocked: ignored, abandoned: ignored };
    return { client, admission: null, version };
  }

  private reinstate(client: YoutubeClient): void {
    this.servedAtMs.set(client, this.now());
    if (!this.breaker(client).open) return;
    this.breakers.set(client, this.createBreaker(client));
    this.onChange(client, null);
  }

  private breaker(client: YoutubeClient): CircuitBreaker {
    const breaker = this.breakers.get(client) ?? this.createBreaker(client);
    this.breakers.set(client, breaker);
    return breaker;
  }

  private createBreaker(client: YoutubeClient): CircuitBreaker {
    let retired = false;
    const onChange = (probeAfterMs: number | null): void => {
      // A refused probe changes nothing.
      if (probeAfterMs === null || !retired) this.onChange(client, probeAfterMs);
      retired = probeAfterMs !== null;
    };
    return new CircuitBreaker(this.now, onChange, LIMITS);
  }
}

import { Gauge, type Registry } from 'prom-client';
import type { YoutubeClient } from '../../../config/environment.js';
import type { Egress } from '../egress/egress.js';
import { report } from '../event-log.js';

/**
 * How a client ended in one attempt at a video. `answered`: it brought the result. `refused`: the platform refused the caller
 * on it. `withheld`: it lists texts that it does not get. `retired`: the platform does not serve its version.
 */
export interface ClientResult {
  client: YoutubeClient;
  end: 'answered' | 'refused' | 'withheld' | 'retired' | 'other';
}

/** This many different videos in a row show what a client does; one alone can be the video's fault. */
const VIDEOS_IN_A_ROW = 3;
/** After this time the configured order is tried again: versions are updated, and blocks end. */
const RETRY_MS = 3_600_000;
/** Versions age over weeks, and a service with traffic reads a video in every hour. */
const SERVED_RECENTLY_MS = 3_600_000;

/** What is known of the clients at one egress. */
interface EgressOrder {
  first: YoutubeClient;
  changedAtMs: number;
  /** Videos in a row of which the first client did not bring the text, and a later one did. */
  readonly videos: Set<string>;
  /** Whether the first client brought a result since it is the first or since the last refusal of all. */
  answered: boolean;
}

/**
 * The order in which videos try the clients, learned from what the platform did with each: the configured order is a guess
 * that ages.
 *
 * - When the first client is refused and another is served at the same egress, that one is first there for an hour. When it is
 *   retired, or its texts are withheld, three videos in a row decide.
 * - When all clients that were tried are refused, and the first was not served before, the next video starts with the others.
 * - A client that the platform does not serve any more comes last at every egress, and is tried first once an hour. While all
 *   are retired, each video asks one of them in turn.
 */
export class ClientOrder {
  private readonly orders = new WeakMap<object, EgressOrder>();
  private readonly servedAtMs = new Map<YoutubeClient, number>();
  /** Videos in a row for which the platform did not serve the version. */
  private readonly retiredVideos = new Map<YoutubeClient, Set<string>>();
  /** When a retired client was tried first the last time. */
  private readonly retiredAtMs = new Map<YoutubeClient, number>();
  private readonly configuredFirst: YoutubeClient;
  private turn = 0;

  /** @param clients the configured order, with WEB when there are PO tokens for it */
  constructor(
    private readonly clients: readonly YoutubeClient[],
    registry: Registry,
    private readonly now: () => number = () => performance.now(),
  ) {
    const [first] = clients;
    if (first === undefined) throw new Error('No client is configured.');
    this.configuredFirst = first;
    const { retiredAtMs } = this;
    new Gauge({
      name: 'ct_upstream_client_retired',
      help: '1 while the platform does not serve the version of an InnerTube client.',
      labelNames: ['client'],
      registers: [registry],
      collect() {
        for (const client of clients) this.set({ client }, Number(retiredAtMs.has(client)));
      },
    });
  }

  /** Whether no client's version is served any more. */
  get allRetired(): boolean {
    return this.clients.every((client) => this.retiredAtMs.has(client));
  }

  /** The clients that a video tries, in their order. */
  candidates(egress: Egress): YoutubeClient[] {
    if (this.allRetired) {
      this.turn += 1;
      return this.clients.slice(this.turn % this.clients.length).slice(0, 1);
    }
    const order = this.orderOf(egress);
    const nowMs = this.now();
    if (order.first !== this.configuredFirst && nowMs - order.changedAtMs >= RETRY_MS)
      this.setFirst(egress, order, this.configuredFirst);
    const ordered = [order.first, ...this.clients.filter((client) => client !== order.first)];
    const isLast = (client: YoutubeClient) => nowMs - (this.retiredAtMs.get(client) ?? -Infinity) < RETRY_MS;
    const [first, ...others] = [
      ...ordered.filter((client) => !isLast(client)),
      ...ordered.filter((client) => isLast(client)),
    ];
    if (first === undefined) return [];
    // Only this video tries it.
    if (this.retiredAtMs.has(first)) this.retiredAtMs.set(first, nowMs);
    return [first, ...others];
  }

  /** Whether the platform served the client's version within the last hour. */
  isServed(client: YoutubeClient): boolean {
    return this.now() - (this.servedAtMs.get(client) ?? -Infinity) < SERVED_RECENTLY_MS;
  }

  /** Records that the platform served a client's version. */
  recordServed(client: YoutubeClient): void {
    this.servedAtMs.set(client, this.now());
    this.retiredVideos.delete(client);
    if (this.retiredAtMs.delete(client)) report('log', 'youtube_client_reinstated', { client });
  }

  /** Learns from an attempt at a video, whose clients are given in the order in which they were tried. */
  learn(egress: Egress, videoId: string, results: readonly ClientResult[]): void {
    for (const { client, end } of results) if (end === 'retired') this.recordRetired(client, videoId);
    const order = this.orderOf(egress);
    const first = results[0];
    if (!first || first.client !== order.first) return;
    // WEB costs a token for each video.
    const answering = results.find(({ client, end }) => end === 'answered' && client !== 'WEB')?.client;
    if (first.end === 'answered') {
      order.answered = true;
      order.videos.clear();
    } else if (answering !== undefined && first.end !== 'other') {
      order.videos.add(videoId);
      if (first.end === 'refused' || order.videos.size >= VIDEOS_IN_A_ROW) this.setFirst(egress, order, answering);
    } else if (answering === undefined && results.every(({ end }) => end === 'refused')) {
      // The sessions of a gateway are refused one by one, whatever the client.
      if (!order.answered && !egress.gateway) this.setFirst(egress, order, this.firstUntried(results));
      order.answered = false;
    }
  }

  private recordRetired(client: YoutubeClient, videoId: string): void {
    const videos = this.retiredVideos.get(client) ?? new Set();
    this.retiredVideos.set(client, videos.add(videoId));
    if (videos.size < VIDEOS_IN_A_ROW || this.retiredAtMs.has(client)) return;
    this.retiredAtMs.set(client, this.now());
    report('warn', 'youtube_client_retired', { client });
  }

  private setFirst({ name: exit }: Egress, order: EgressOrder, first: YoutubeClient): void {
    if (first === order.first) return;
    if (first === this.configuredFirst) report('log', 'youtube_client_back', { exit, client: order.first });
    else report('warn', 'youtube_client_rested', { exit, client: order.first, first });
    Object.assign(order, { first, changedAtMs: this.now(), answered: false });
    order.videos.clear();
  }

  /** The first client that was not tried. */
  private firstUntried(results: readonly ClientResult[]): YoutubeClient {
    const others = this.clients.filter((client) => client !== 'WEB' && !results.some((each) => each.client === client));
    return others[0] ?? this.configuredFirst;
  }

  private orderOf(egress: Egress): EgressOrder {
    // Sessions are short-lived: what is learned through them concerns the gateway.
    const owner = egress.gateway ?? egress;
    const known = this.orders.get(owner);
    if (known) return known;
    const created = {
      first: this.configuredFirst,
      changedAtMs: this.now(),
      videos: new Set<string>(),
      answered: false,
    };
    this.orders.set(owner, created);
    return created;
  }
}

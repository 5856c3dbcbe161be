import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
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
/** How long a client comes last, and counts as served: versions age over weeks, and blocks end. */
const REST_MS = 3_600_000;

/** What is known of a client at one egress, or of its version. */
class ClientHealth {
  /** Videos in a row that it did not bring. */
  readonly videos = new Set<string>();
  /** It comes last until then; undefined when it does not rest. */
  restsUntilMs: number | undefined;
  /** When it was served last; -Infinity for never, or not since all clients of the egress were refused. */
  servedAtMs = -Infinity;

  /** Counts a video that the client did not bring. Returns whether it begins to rest. */
  fail(videoId: string, videosMax: number, nowMs: number): boolean {
    if (this.restsUntilMs !== undefined || this.videos.add(videoId).size < videosMax) return false;
    this.restsUntilMs = nowMs + REST_MS;
    return true;
  }

  /** Returns whether the client rested until now. */
  succeed(nowMs: number): boolean {
    const rested = this.restsUntilMs !== undefined;
    this.videos.clear();
    this.restsUntilMs = undefined;
    this.servedAtMs = nowMs;
    return rested;
  }
}

/**
 * The order in which videos try the clients, learned from what the platform did with each: the configured order is a guess
 * that ages. A client comes last for an hour, and then one video an hour tries it in its place until it is served:
 *
 * - at an egress, when it is refused and another is served, or when its texts are withheld for three videos in a row. When all
 *   that were tried are refused, and none of them was served before, they rest, and the next video starts with the others;
 * - at every egress, when the platform does not serve its version for three videos in a row. While all are retired, each video
 *   asks one of them in turn.
 */
@Injectable()
export class ClientOrder {
  private readonly clients: readonly YoutubeClient[];
  private readonly versions: ReadonlyMap<YoutubeClient, ClientHealth>;
  private readonly atEgress = new WeakMap<object, ReadonlyMap<YoutubeClient, ClientHealth>>();

  constructor({ YOUTUBE_CLIENTS, PO_TOKEN_URL }: Environment, registry: Registry) {
    // WEB, whose PO tokens cost the provider seconds, comes last unless it is listed.
    const appended: YoutubeClient[] = PO_TOKEN_URL === undefined || YOUTUBE_CLIENTS.includes('WEB') ? [] : ['WEB'];
    this.clients = [...YOUTUBE_CLIENTS, ...appended];
    const versions = this.newHealth();
    this.versions = versions;
    new Gauge({
      name: 'ct_upstream_client_retired',
      help: '1 while the platform does not serve the version of an InnerTube client.',
      labelNames: ['client'],
      registers: [registry],
      collect() {
        for (const [client, { restsUntilMs }] of versions) this.set({ client }, Number(restsUntilMs !== undefined));
      },
    });
  }

  /** Whether no client's version is served any more. */
  get allRetired(): boolean {
    return [...this.versions.values()].every(({ restsUntilMs }) => restsUntilMs !== undefined);
  }

  /** The clients that a video tries, in their order. */
  candidates(egress: Egress): YoutubeClient[] {
    const nowMs = this.now();
    const local = this.healthAt(egress);
    const of = (client: YoutubeClient) => [this.versions.get(client), local.get(client)].filter((each) => !!each);
    const restMs = (client: YoutubeClient) =>
      Math.max(0, ...of(client).map(({ restsUntilMs }) => (restsUntilMs ?? nowMs) - nowMs));
    // Sorting is stable: those that do not rest are in the configured order.
    const ordered = this.clients.toSorted((one, other) => restMs(one) - restMs(other));
    const [first] = ordered;
    // Only this video tries one whose rest has ended.
    for (const health of first === undefined ? [] : of(first))
      if (health.restsUntilMs !== undefined) health.restsUntilMs = nowMs + REST_MS;
    return this.allRetired ? ordered.slice(0, 1) : ordered;
  }

  /** Whether the platform served the client's version within the last hour. */
  isServed(client: YoutubeClient): boolean {
    return this.now() - (this.versions.get(client)?.servedAtMs ?? -Infinity) < REST_MS;
  }

  /** Records that the platform served a client's version. */
  recordServed(client: YoutubeClient): void {
    if (this.versions.get(client)?.succeed(this.now())) report('log', 'youtube_client_reinstated', { client });
  }

  /** Learns from an attempt at a video, whose clients are given in the order in which they were tried. */
  learn(egress: Egress, videoId: string, results: readonly ClientResult[]): void {
    const nowMs = this.now();
    const { name: exit } = egress;
    const local = this.healthAt(egress);
    // WEB costs a token for each video.
    const isAnswered = results.some(({ client, end }) => end === 'answered' && client !== 'WEB');
    // The sessions of a gateway are refused one by one, whatever the client.
    const allRefused = !egress.gateway && results.every(({ end }) => end === 'refused');
    const servedBefore = results.some(({ client }) => (local.get(client)?.servedAtMs ?? -Infinity) > -Infinity);
    for (const { client, end } of results) {
      const health = local.get(client);
      if (end === 'retired' && this.versions.get(client)?.fail(videoId, VIDEOS_IN_A_ROW, nowMs))
        report('warn', 'youtube_client_retired', { client });
      if (end === 'answered' && health?.succeed(nowMs)) report('log', 'youtube_client_back', { exit, client });
      if (health && allRefused && servedBefore) health.servedAtMs = -Infinity;
      const hasFailed = isAnswered ? end === 'refused' || end === 'withheld' : allRefused && !servedBefore;
      if (hasFailed && health?.fail(videoId, end === 'refused' ? 1 : VIDEOS_IN_A_ROW, nowMs))
        report('warn', 'youtube_client_rested', { exit, client });
    }
  }

  /** Milliseconds of a monotonic clock. */
  protected now(): number {
    return performance.now();
  }

  private newHealth(): Map<YoutubeClient, ClientHealth> {
    return new Map(this.clients.map((client) => [client, new ClientHealth()]));
  }

  private healthAt(egress: Egress): ReadonlyMap<YoutubeClient, ClientHealth> {
    // Sessions are short-lived: what is learned through them concerns the gateway.
    const owner = egress.gateway ?? egress;
    const known = this.atEgress.get(owner) ?? this.newHealth();
    this.atEgress.set(owner, known);
    return known;
  }
}

import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
import type { Egress } from '../egress/egress.js';
import type { BudgetKind } from '../egress/line.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { WebVersion } from '../innertube/web-version.js';

/**
 * How a client ended in one attempt at a video. `answered`: it brought the result. `failed`: the player or its texts were
 * refused, unreadable or did not arrive. `retired`: the platform does not serve its version.
 */
export interface ClientResult {
  client: YoutubeClient;
  end: 'answered' | 'failed' | 'retired' | 'other';
}

/** This many different videos in a row show what a client does; one alone can be the video's fault. */
const FAILED_IN_A_ROW = 2;
const RETIRED_IN_A_ROW = 3;
/** How long a client comes last: versions age over weeks, and blocks end. */
const REST_MS = 3_600_000;
/** How many served videos are remembered as controls: one can be deleted. */
const REMEMBERED = 3;

/** What is known of a client at one egress, or of its version. */
class ClientHealth {
  /** Videos in a row that it did not bring. */
  readonly videos = new Set<string>();
  /** It comes last until then; undefined when it does not rest. */
  restsUntilMs: number | undefined;
  servedAtMs = -Infinity;
  /** The videos whose text it was served last, the newest first. */
  served: readonly string[] = [];

  /** Counts a video that the client did not bring. Returns whether it begins to rest. */
  fail(videoId: string, videosMax: number, nowMs: number): boolean {
    // Not while it rests: they would be counted without end.
    if (this.restsUntilMs !== undefined || this.videos.add(videoId).size < videosMax) return false;
    return this.rest(nowMs);
  }

  /** Returns whether it did not rest until now. */
  rest(nowMs: number): boolean {
    if (this.restsUntilMs !== undefined) return false;
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
 * - at an egress, when it fails for two videos in a row that another client brings, or when its control is refused;
 * - at every egress, when the platform does not serve its version for three videos in a row. While all are retired, each video
 *   asks one of them in turn.
 */
@Injectable()
export class ClientOrder {
  private readonly clients: readonly YoutubeClient[];
  private readonly versions: ReadonlyMap<YoutubeClient, ClientHealth>;
  /** By the name of the egress: sessions are short-lived, and what is learned through them concerns their gateway. */
  private readonly atEgress = new Map<string, ReadonlyMap<YoutubeClient, ClientHealth>>();

  constructor({ YOUTUBE_CLIENTS, PO_TOKEN_URL }: Environment, registry: Registry, webVersion: WebVersion) {
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
        // It reads all lists, and no videos unless it is one of these.
        const isRetired = webVersion.retired || versions.get('WEB')?.restsUntilMs !== undefined;
        this.set({ client: 'WEB' }, Number(isRetired));
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
    const ordered = this.ordered(egress);
    const [first] = ordered;
    // Only this video tries one whose rest has ended.
    for (const health of first === undefined ? [] : this.healthOf(egress, first))
      if (health.restsUntilMs !== undefined) health.restsUntilMs = nowMs + REST_MS;
    return this.allRetired ? ordered.slice(0, 1) : ordered;
  }

  /** The clients that a control can be asked with, in their order: WEB needs a token. */
  controls(egress: Egress): YoutubeClient[] {
    return this.ordered(egress).filter((client) => client !== 'WEB');
  }

  isServed(egress: Egress, client: YoutubeClient, withinMs: number): boolean {
    return this.now() - (this.healthAt(egress).get(client)?.servedAtMs ?? -Infinity) <= withinMs;
  }

  /** Whether the version of a client was served at any egress within the last milliseconds. */
  isVersionServed(client: YoutubeClient, withinMs: number): boolean {
    return this.now() - (this.versions.get(client)?.servedAtMs ?? -Infinity) <= withinMs;
  }

  /** The videos whose text was served last to a client, at an egress and then at any: controls that are known to be served. */
  servedVideos(egress: Egress, client: YoutubeClient): string[] {
    const [version, local] = this.healthOf(egress, client);
    return [...(local?.served ?? []), ...(version?.served ?? [])];
  }

  /** The platform listed the tracks of a video, or served their text, to a client of an egress. */
  recordServed({ egress, attempt }: RequestScope, client: YoutubeClient, videoId: string, kind: BudgetKind): void {
    egress.uses.video.served(kind, client, attempt.sentAtMs);
    const [version, local] = this.healthOf(egress, client);
    if (local) local.servedAtMs = this.now();
    if (version?.succeed(this.now())) report('log', 'youtube_client_reinstated', { client });
    if (attempt.role === 'control') return;
    egress.uses.video.line.answered(kind);
    // Not with its tracks alone: their texts may need tokens.
    if (kind === 'captions')
      for (const health of this.healthOf(egress, client))
        health.served = [videoId, ...health.served.filter((other) => other !== videoId)].slice(0, REMEMBERED);
  }

  /** The control of a client was refused at an egress while another client was served. */
  rest(egress: Egress, client: YoutubeClient): void {
    if (this.healthAt(egress).get(client)?.rest(this.now()))
      report('warn', 'youtube_client_rested', { exit: egress.name, client });
  }

  /** Learns from an attempt at a video, whose clients are given in the order in which they were tried. */
  learn(egress: Egress, videoId: string, results: readonly ClientResult[]): void {
    const nowMs = this.now();
    const { name: exit } = egress;
    const local = this.healthAt(egress);
    // WEB costs a token for each video.
    const isAnswered = results.some(({ client, end }) => end === 'answered' && client !== 'WEB');
    for (const { client, end } of results) {
      const health = local.get(client);
      if (end === 'retired' && this.versions.get(client)?.fail(videoId, RETIRED_IN_A_ROW, nowMs))
        report('warn', 'youtube_client_retired', { client });
      if (end === 'answered' && health?.succeed(nowMs)) report('log', 'youtube_client_back', { exit, client });
      if (isAnswered && end === 'failed' && health?.fail(videoId, FAILED_IN_A_ROW, nowMs))
        report('warn', 'youtube_client_rested', { exit, client });
    }
  }

  /** Milliseconds of a monotonic clock. */
  protected now(): number {
    return performance.now();
  }

  private ordered(egress: Egress): YoutubeClient[] {
    const nowMs = this.now();
    const restMs = (client: YoutubeClient) =>
      Math.max(0, ...this.healthOf(egress, client).map(({ restsUntilMs }) => (restsUntilMs ?? nowMs) - nowMs));
    // Sorting is stable: those that do not rest are in the configured order.
    return this.clients.toSorted((one, other) => restMs(one) - restMs(other));
  }

  private newHealth(): Map<YoutubeClient, ClientHealth> {
    return new Map(this.clients.map((client) => [client, new ClientHealth()]));
  }

  /** Of the version of a client, and of the client at an egress. */
  private healthOf(egress: Egress, client: YoutubeClient): ClientHealth[] {
    return [this.versions.get(client), this.healthAt(egress).get(client)].filter((each) => !!each);
  }

  private healthAt({ name }: Egress): ReadonlyMap<YoutubeClient, ClientHealth> {
    const known = this.atEgress.get(name) ?? this.newHealth();
    this.atEgress.set(name, known);
    return known;
  }
}

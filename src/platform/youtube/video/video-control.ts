import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { YoutubeClient } from '../../../config/environment.js';
import { fetchCaption } from '../captions/caption-fetch.js';
import { Attempt } from '../egress/attempt.js';
import type { Egress } from '../egress/egress.js';
import type { BudgetKind } from '../egress/egress-gate.js';
import type { ControlEnd } from '../egress/egress-pool.js';
import type { Doubt, Finding } from '../egress/examination.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { RetryBudget } from '../egress/retry.js';
import { isUnreached } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { otherApps } from './client-fallback.js';
import { ClientOrder } from './client-order.js';
import { requestPlayer } from './player-requests.js';
import { selectTracks } from './player-tracks.js';

/**
 * Old public videos with manual captions, asked for when this process has not been served any other: "Me at the zoo" (2005, the
 * platform's first) and "Gangnam Style" (2012). Both had manual English captions in November 2026, according to public pages.
 */
const CONTROL_VIDEOS: readonly string[] = ['jNQXAC9IVRw', '9bZkp7q19f0'];

/** How many served videos are remembered for each client of an egress: one can be deleted. */
const REMEMBERED = 3;
/** Longest wait for a control. */
const TIMEOUT_MS = 20_000;

/** A control that was asked. */
interface Asked {
  end: ControlEnd;
  retryAfterSeconds: number | null;
}

/** The videos that were served last, by the owner of an egress and by client, the newest last. */
class ServedVideos {
  private readonly byOwner = new WeakMap<object, Map<YoutubeClient, Set<string>>>();

  add(owner: object, client: YoutubeClient, videoId: string): void {
    const clients = this.byOwner.get(owner) ?? new Map<YoutubeClient, Set<string>>();
    const videos = clients.get(client) ?? new Set<string>();
    videos.delete(videoId);
    videos.add(videoId);
    for (const oldest of videos) if (videos.size > REMEMBERED) videos.delete(oldest);
    this.byOwner.set(owner, clients.set(client, videos));
  }

  newestFirst(owner: object, client: YoutubeClient): string[] {
    return [...(this.byOwner.get(owner)?.get(client) ?? [])].reverse();
  }
}

/**
 * The control experiment for videos: whether a video that is known to be served is served to a client of an egress. An address
 * is refused when two controls are, with clients of two apps; a client is refused when another one is served.
 */
@Injectable()
export class VideoControl {
  private readonly served = new ServedVideos();
  /** Stands for all egresses of the process. */
  private readonly process = {};
  /** Controls that were asked at the end of pauses, so that each asks with another client. */
  private readonly probes = new LRUCache<string, number>({ max: 1_000 });

  constructor(
    private readonly innertube: InnertubeClient,
    private readonly order: ClientOrder,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** The platform listed the tracks of a video, or served their text, to a client of an egress. */
  recordServed({ egress, attempt }: RequestScope, client: YoutubeClient, videoId: string, kind: BudgetKind): void {
    egress.examinations.video.served(kind, client, attempt.sentAtMs);
    this.order.recordServed(egress, client);
    if (attempt.role === 'control') return;
    egress.gates.video.answered(kind);
    // Not with its tracks alone: their texts may need tokens.
    if (kind !== 'captions') return;
    for (const owner of [egress.gateway ?? egress, this.process]) this.served.add(owner, client, videoId);
  }

  /** Settles a doubt about a video: see `Examination.settle`. @param client that the control is asked with first */
  settle(doubt: Doubt, client: YoutubeClient, videoId: string, { egress, context }: RequestScope): Promise<Finding> {
    const experiment = () => this.experiment(egress, doubt.kind, client, videoId);
    return egress.examinations.video.settle(doubt, context, experiment);
  }

  /** At the end of a pause, or to find out whether an egress is reached: one control, each time with another client. */
  async probe(egress: Egress, kind: BudgetKind | null): Promise<ControlEnd> {
    const clients = this.order.controls(egress);
    const probes = this.probes.get(egress.name) ?? 0;
    this.probes.set(egress.name, probes + 1);
    const client = clients[probes % Math.max(1, clients.length)];
    return client ? (await this.ask(egress, client, kind ?? 'player', '', probes)).end : 'unknown';
  }

  private async experiment(egress: Egress, kind: BudgetKind, client: YoutubeClient, videoId: string): Promise<Finding> {
    const first = await this.ask(egress, client, kind, videoId, 0);
    const isDoubted = (each: YoutubeClient) => egress.examinations.video.isClientDoubted(kind, each);
    const others = otherApps(client, this.order.controls(egress), isDoubted);
    let second: Asked | null = null;
    // One whose version is retired tells nothing.
    for (const other of first.end === 'refused' ? (others.length > 0 ? others : [client]) : [])
      if (!second || second.end === 'unknown') second = await this.ask(egress, other, kind, videoId, 1);
    const finding = findingOf(first.end, second?.end, others.length === 0);
    if (finding === 'client-refused') {
      egress.examinations.video.clientRefused(kind, client);
      this.order.rest(egress, client);
    }
    const retryAfterSeconds = first.retryAfterSeconds ?? second?.retryAfterSeconds ?? null;
    if (finding === 'address-refused' && !egress.gateway) egress.gates.video.pause(kind, retryAfterSeconds);
    this.metrics.notice('control', client, finding);
    report(finding === 'served' ? 'log' : 'warn', 'youtube_control_asked', {
      ...{ exit: egress.name, use: 'video', kind, client, videoId, finding },
    });
    return finding;
  }

  /** Reads a control through an egress as a client. @param position among the videos that are known to be served */
  private async ask(
    egress: Egress,
    client: YoutubeClient,
    kind: BudgetKind,
    doubtedId: string,
    position: number,
  ): Promise<Asked> {
    const known = [
      ...this.served.newestFirst(egress.gateway ?? egress, client),
      ...this.served.newestFirst(this.process, client),
      ...CONTROL_VIDEOS,
    ];
    const videos = [...new Set(known)].filter((videoId) => videoId !== doubtedId);
    const videoId = videos[position % Math.max(1, videos.length)] ?? '';
    const scope = controlScope(egress, videoId);
    try {
      return await this.read(scope, client, videoId, kind);
    } catch {
      // The control took too long.
      return { end: 'unreached', retryAfterSeconds: null };
    }
  }

  private async read(scope: RequestScope, client: YoutubeClient, videoId: string, kind: BudgetKind): Promise<Asked> {
    const player = await requestPlayer(this.innertube, { client, proof: null }, videoId, scope);
    const asked = (end: ControlEnd, retryAfterSeconds: number | null = null) => ({ end, retryAfterSeconds });
    if (player.kind === 'blocked') return asked('refused', player.retryAfterSeconds);
    if (player.kind !== 'parsed') return asked(isUnreached(player) ? 'unreached' : 'unknown');
    if (player.value.kind !== 'tracks') return asked(player.value.kind === 'client-retired' ? 'unknown' : 'refused');
    this.recordServed(scope, client, videoId, 'player');
    if (kind !== 'captions') return asked('served');
    const [track] = selectTracks(player.value.tracks, player.value.defaults, []);
    if (!track) return asked('unknown');
    const text = await fetchCaption(this.innertube, client, track, videoId, scope);
    if (text.kind === 'blocked') return asked('refused', text.retryAfterSeconds);
    if (text.kind === 'withheld') return asked('refused');
    if (text.kind !== 'text') return asked(isUnreached(text) ? 'unreached' : 'unknown');
    this.recordServed(scope, client, videoId, 'captions');
    return asked('served');
  }
}

/** Whom two controls show to be refused. @param alone whether there is no client of another app */
function findingOf(first: ControlEnd, second: ControlEnd | undefined, alone: boolean): Finding {
  if (first === 'served') return 'served';
  if (first !== 'refused') return 'unknown';
  if (second === 'served') return alone ? 'served' : 'client-refused';
  return second === 'refused' ? 'address-refused' : 'unknown';
}

/** A scope that no caller ends and nothing holds back. */
function controlScope(egress: Egress, subject: string): RequestScope {
  const context = {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    deadlineAtMs: performance.now() + TIMEOUT_MS,
    organizationId: '',
    fairnessKey: {},
  };
  const attempt = new Attempt(subject, 'control');
  return { egress, attempt, context, budget: new RetryBudget(0), hasAlternative: false, attempts: 1 };
}

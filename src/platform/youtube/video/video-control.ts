import { Injectable } from '@nestjs/common';
import type { YoutubeClient } from '../../../config/environment.js';
import { fetchCaption } from '../captions/caption-fetch.js';
import type { Egress } from '../egress/egress.js';
import { type Asked, askControl, concludeExperiment } from '../egress/control.js';
import type { BudgetKind } from '../egress/egress-gate.js';
import type { ControlEnd } from '../egress/egress-pool.js';
import type { Doubt, Finding } from '../egress/examination.js';
import type { RequestScope } from '../egress/request-pipeline.js';
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

/**
 * The control experiment for videos: whether a video that is known to be served is served to a client of an egress. An address
 * is refused when two controls are, with clients of two apps; a client is refused when another one is served.
 */
@Injectable()
export class VideoControl {
  /** The videos that were served last, the newest first, by client and by the name of the egress, which is empty for any. */
  private readonly served = new Map<string, readonly string[]>();
  /** Controls that were asked at the end of pauses, by the name of the egress, so that each asks with another client. */
  private readonly probes = new Map<string, number>();
  /** The clients whose controls were refused since an experiment paused an egress, by its name. */
  private readonly refused = new Map<string, Set<YoutubeClient>>();

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
    for (const key of [`${client} ${egress.name}`, `${client} `]) {
      const others = (this.served.get(key) ?? []).filter((other) => other !== videoId);
      this.served.set(key, [videoId, ...others].slice(0, REMEMBERED));
    }
  }

  /** Settles a doubt about a video: see `Examination.settle`. @param client that the control is asked with first */
  settle(doubt: Doubt, client: YoutubeClient, videoId: string, { egress, context }: RequestScope): Promise<Finding> {
    const experiment = () => this.experiment(egress, doubt.kind, client, videoId);
    return egress.examinations.video.settle(doubt, context, experiment);
  }

  /** At the end of a pause, or to find out whether an egress is reached: one control, each time with another client. */
  async probe(egress: Egress, kind: BudgetKind | null): Promise<ControlEnd> {
    const refused = this.refused.get(egress.name) ?? new Set();
    const all = this.order.controls(egress);
    const untried = all.filter((each) => !refused.has(each));
    const probes = this.probes.get(egress.name) ?? 0;
    this.probes.set(egress.name, probes + 1);
    const client = untried[probes % untried.length] ?? all[probes % all.length];
    // Only WEB is configured, which needs a token: the next video finds out, or the pause would never end.
    if (!client) return 'served';
    const { end } = await this.ask(egress, client, kind ?? 'player', '', probes);
    if (end !== 'served' || kind === null) return end;
    // The clients were refused, and perhaps never the address: the next videos begin with the one that is served.
    for (const each of refused) if (each !== client) this.order.rest(egress, each);
    this.refused.delete(egress.name);
    return end;
  }

  private async experiment(egress: Egress, kind: BudgetKind, client: YoutubeClient, videoId: string): Promise<Finding> {
    this.refused.set(egress.name, new Set());
    const first = await this.ask(egress, client, kind, videoId, 0);
    const isDoubted = (each: YoutubeClient) => egress.examinations.video.isClientDoubted(kind, each);
    const others = otherApps(client, this.order.controls(egress), isDoubted);
    let second: Asked | null = null;
    // One whose version is retired tells nothing.
    for (const other of first.end === 'refused' ? (others.length > 0 ? others : [client]) : [])
      if (!second || second.end === 'unknown') second = await this.ask(egress, other, kind, videoId, 1);
    const finding = findingOfControl(first.end, second?.end, others.length === 0);
    if (finding === 'client-refused') {
      egress.examinations.video.clientRefused(kind, client);
      this.order.rest(egress, client);
    }
    const controls = second ? [first, second] : [first];
    const experiment = { use: 'video', kind, client, subject: videoId, finding, controls } as const;
    concludeExperiment(egress, experiment, this.metrics);
    if (!egress.gates.video.paused) this.refused.delete(egress.name);
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
    const served = [egress.name, ''].flatMap((name) => this.served.get(`${client} ${name}`) ?? []);
    const videos = [...new Set([...served, ...CONTROL_VIDEOS])].filter((videoId) => videoId !== doubtedId);
    const videoId = videos[position % videos.length] ?? '';
    const asked = await askControl(egress, videoId, (scope) => this.read(scope, client, videoId, kind));
    if (asked.end === 'refused') this.refused.get(egress.name)?.add(client);
    return asked;
  }

  private async read(scope: RequestScope, client: YoutubeClient, videoId: string, kind: BudgetKind) {
    const player = await requestPlayer(this.innertube, { client, proof: null }, videoId, scope);
    if (player.kind !== 'parsed') return player;
    if (player.value.kind !== 'tracks') return player.value.kind === 'client-retired' ? 'unknown' : 'refused';
    this.recordServed(scope, client, videoId, 'player');
    if (kind !== 'captions') return 'served';
    const [track] = selectTracks(player.value.tracks, player.value.defaults, []);
    if (!track) return 'unknown';
    const text = await fetchCaption(this.innertube, client, track, videoId, scope);
    if (text.kind === 'withheld') return 'refused';
    if (text.kind !== 'text') return text;
    this.recordServed(scope, client, videoId, 'captions');
    return 'served';
  }
}

/** Whom two controls show to be refused. @param alone whether there is no client of another app */
function findingOfControl(first: ControlEnd, second: ControlEnd | undefined, alone: boolean): Finding {
  if (first === 'served') return 'served';
  if (first !== 'refused') return 'unknown';
  if (second === 'served') return alone ? 'served' : 'client-refused';
  return second === 'refused' ? 'address-refused' : 'unknown';
}

import { Injectable } from '@nestjs/common';
import type { YoutubeClient } from '../../../config/environment.js';
import { fetchCaption } from './captions.js';
import type { Egress } from '../egress/egress.js';
import type { Controls } from '../egress/experiment.js';
import type { BudgetKind } from '../egress/line.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
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

/** The videos that are known to be served, as controls for players and captions. */
@Injectable()
export class ControlVideos implements Controls {
  /** The videos that were served last, the newest first, by client and by the name of the egress, which is empty for any. */
  private readonly served = new Map<string, readonly string[]>();

  constructor(
    private readonly innertube: InnertubeClient,
    private readonly order: ClientOrder,
  ) {}

  /** The platform listed the tracks of a video, or served their text, to a client of an egress. */
  recordServed({ egress, attempt }: RequestScope, client: YoutubeClient, videoId: string, kind: BudgetKind): void {
    egress.uses.video.served(kind, client, attempt.sentAtMs);
    this.order.recordServed(egress, client);
    if (attempt.role === 'control') return;
    egress.uses.video.line.answered(kind);
    // Not with its tracks alone: their texts may need tokens.
    if (kind !== 'captions') return;
    for (const key of [`${client} ${egress.name}`, `${client} `]) {
      const others = (this.served.get(key) ?? []).filter((other) => other !== videoId);
      this.served.set(key, [videoId, ...others].slice(0, REMEMBERED));
    }
  }

  clients(egress: Egress): readonly YoutubeClient[] {
    return this.order.controls(egress);
  }

  ids({ name }: Egress, client: YoutubeClient): readonly string[] {
    const served = [name, ''].flatMap((egress) => this.served.get(`${client} ${egress}`) ?? []);
    return [...new Set([...served, ...CONTROL_VIDEOS])];
  }

  async ask(videoId: string, client: YoutubeClient, kind: BudgetKind, scope: RequestScope) {
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

  rest(egress: Egress, client: YoutubeClient): void {
    this.order.rest(egress, client);
  }
}

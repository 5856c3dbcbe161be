import { Injectable } from '@nestjs/common';
import type { YoutubeClient } from '../../../config/environment.js';
import type { Egress } from '../egress/egress.js';
import type { Controls } from '../egress/experiment.js';
import type { BudgetKind } from '../egress/line.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { countryOf, type VisitorExchange } from '../innertube/visitor-data-cache.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS } from '../innertube/field-masks.js';
import { fetchCaption } from './captions.js';
import { ClientOrder } from './client-order.js';
import { type PlayerResult, readPlayer, readPublishDate, readReel } from './player-response.js';
import { selectTracks } from './player-tracks.js';
import type { WebProof } from './web-proofs.js';

const SERVED_RECENTLY_MS = 60_000;

export interface Candidate {
  client: YoutubeClient;
  /** What WEB sends in addition; null for the other clients. */
  proof: WebProof | null;
}

const playerPayload = (videoId: string, proof: WebProof | null = null) => ({
  ...{ videoId, contentCheckOk: true, racyCheckOk: true },
  ...(proof && {
    serviceIntegrityDimensions: { poToken: proof.poToken },
    playbackContext: { contentPlaybackContext: { signatureTimestamp: proof.signatureTimestamp } },
  }),
});

const PLAYER = { path: 'player', fields: PLAYER_FIELDS, payload: playerPayload, read: readPlayer };

/** The reel endpoint plays videos made for kids, which VISIONOS refuses (recorded in June 2026). */
const REEL = {
  path: 'reel/reel_item_watch',
  fields: REEL_FIELDS,
  payload: (videoId: string) => ({ playerRequest: playerPayload(videoId), disablePlayerResponse: false }),
  read: readReel,
};

/**
 * Requests a player response, and once more with other visitor data when the platform refuses this one, unless the address may
 * be refused: then as little as possible is sent. Rejects only when the scope's signal is aborted.
 *
 * @param onReading called with each response
 */
export async function requestPlayer(
  innertube: InnertubeClient,
  { client, proof }: Candidate,
  videoId: string,
  scope: RequestScope,
  onReading: (reading: PlayerResult) => void = () => undefined,
): Promise<ParsedResponse<PlayerResult>> {
  const { path, fields, payload, read } = client === 'ANDROID_REEL' ? REEL : PLAYER;
  const query = { kind: 'player', client, path, payload: payload(videoId, proof), fields } as const;
  const send = async () => {
    const parse = (response: unknown, visitor: VisitorExchange) => {
      const reading = read(response, videoId);
      const isOfCountry = reading.kind === 'country-restricted';
      return { reading: isOfCountry ? { ...reading, country: countryOf(visitor) } : reading, visitor };
    };
    const answer = await innertube.query(query, parse, scope);
    if (answer.kind === 'parsed') onReading(answer.value.reading);
    return answer;
  };
  const first = await send();
  if (first.kind !== 'parsed') return first;
  const { reading, visitor } = first.value;
  const isRefused = reading.kind === 'bot-check' || reading.kind === 'session-refused';
  const isReplaced = isRefused && innertube.replaceVisitorData(scope.egress, client, visitor);
  const { video } = scope.egress.uses;
  // Data that was served within the last minute is not what is refused.
  const isSuspect = !video.isServed({ kind: 'player', client, sinceMs: performance.now() - SERVED_RECENTLY_MS });
  const isFirst = scope.attempt.role === 'wanted' && !video.isDoubted('player') && isSuspect;
  const second = isReplaced && isFirst ? await send() : first;
  if (second.kind === 'parsed') return { kind: 'parsed', value: second.value.reading };
  // Not sent in time: the refusal is what is known.
  return second.kind === 'busy' ? { kind: 'parsed', value: reading } : second;
}

/** Requests a video's publish date as WEB; null when there is none. Rejects only when the scope's signal is aborted. */
export async function requestPublishDate(
  innertube: InnertubeClient,
  videoId: string,
  scope: RequestScope,
): Promise<string | null> {
  const query = { kind: 'microformat', client: 'WEB', path: 'player', fields: MICROFORMAT_FIELDS } as const;
  const payload = playerPayload(videoId);
  const response = await innertube.query({ ...query, payload }, (json) => readPublishDate(json, videoId), scope);
  return response.kind === 'parsed' ? response.value : null;
}

/**
 * Old public videos with manual captions, asked for when this process has not been served any other: "Me at the zoo" (2005, the
 * platform's first) and "Gangnam Style" (2012). Both had manual English captions in November 2026, according to public pages.
 */
const CONTROL_VIDEOS: readonly string[] = ['jNQXAC9IVRw', '9bZkp7q19f0'];

/** The videos that are known to be served, as controls for players and captions. */
@Injectable()
export class ControlVideos implements Controls {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly order: ClientOrder,
  ) {}

  clients(egress: Egress): readonly YoutubeClient[] {
    return this.order.controls(egress);
  }

  ids(egress: Egress, client: YoutubeClient): readonly string[] {
    return [...new Set([...this.order.servedVideos(egress, client), ...CONTROL_VIDEOS])];
  }

  async ask(videoId: string, client: YoutubeClient, kind: BudgetKind, scope: RequestScope) {
    const player = await requestPlayer(this.innertube, { client, proof: null }, videoId, scope);
    if (player.kind !== 'parsed') return player;
    if (player.value.kind !== 'tracks') return player.value.kind === 'client-retired' ? 'unknown' : 'refused';
    this.order.recordServed(scope, client, videoId, 'player');
    if (kind !== 'captions') return 'served';
    const [track] = selectTracks(player.value.tracks, player.value.defaults, []);
    if (!track) return 'unknown';
    const text = await fetchCaption(this.innertube, client, track, videoId, scope);
    if (text.kind === 'withheld') return 'refused';
    if (text.kind !== 'text' && text.kind !== 'too-long') return text;
    this.order.recordServed(scope, client, videoId, 'captions');
    return 'served';
  }

  rest(egress: Egress, client: YoutubeClient): void {
    this.order.rest(egress, client);
  }
}

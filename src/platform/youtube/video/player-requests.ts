import type { YoutubeClient } from '../../../config/environment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { InnertubeCall, InnertubeClient, ParsedResponse } from '../innertube/innertube-client.js';
import type { VisitorExchange } from '../innertube/visitor-data-cache.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS, type MaskVerdict } from '../innertube/field-masks.js';
import { type Microformat, type PlayerReading, readMicroformat, readPlayer, readReel } from './player-response.js';

interface PlayerEndpoint {
  path: string;
  fields: string;
  payload: (videoId: string) => Readonly<Record<string, unknown>>;
  read: (response: unknown, videoId: string) => PlayerReading;
  /** Readings that a mask may cause which the client supports only in part. They are checked until a mask is proved. */
  doubtful: readonly PlayerReading['kind'][];
}

const playerPayload = (videoId: string) => ({ videoId, contentCheckOk: true, racyCheckOk: true });

const PLAYER: PlayerEndpoint = {
  path: 'player',
  fields: PLAYER_FIELDS,
  payload: playerPayload,
  read: readPlayer,
  doubtful: ['no-captions'],
};

/** The reel endpoint plays videos made for kids, which VISIONOS refuses (recorded in June 2026). */
const ENDPOINTS: Readonly<Record<YoutubeClient, PlayerEndpoint>> = {
  VISIONOS: PLAYER,
  ANDROID: PLAYER,
  IOS: PLAYER,
  ANDROID_VR: PLAYER,
  ANDROID_REEL: {
    path: 'reel/reel_item_watch',
    fields: REEL_FIELDS,
    payload: (videoId) => ({ playerRequest: playerPayload(videoId), disablePlayerResponse: false }),
    read: readReel,
    doubtful: ['no-captions', 'unavailable'],
  },
};

/** A player response, and the visitor data with which it was requested. */
export interface PlayerAnswer {
  reading: PlayerReading;
  visitor: VisitorExchange;
}

/** Requests a video's player response as a client. Rejects only when the scope's signal is aborted. */
export function requestPlayer(
  innertube: InnertubeClient,
  client: YoutubeClient,
  videoId: string,
  scope: RequestScope,
): Promise<ParsedResponse<PlayerAnswer>> {
  const { path, fields, payload, read, doubtful } = ENDPOINTS[client];
  const call: InnertubeCall = { kind: 'player', client, path, payload: payload(videoId), fields };
  const parse = (response: unknown, visitor: VisitorExchange) => ({ reading: read(response, videoId), visitor });
  const verdictOf = ({ reading: { kind } }: PlayerAnswer, maskProved: boolean): MaskVerdict => {
    if (kind === 'tracks') return 'proof';
    return !maskProved && doubtful.includes(kind) ? 'doubtful' : 'fine';
  };
  return innertube.query(call, parse, scope, verdictOf);
}

/** Requests a video's publish date as WEB; null when there is none. Rejects only when the scope's signal is aborted. */
export async function requestMicroformat(
  innertube: InnertubeClient,
  videoId: string,
  scope: RequestScope,
): Promise<Microformat | null> {
  const call: InnertubeCall = {
    ...{ kind: 'microformat', client: 'WEB', path: 'player' },
    ...{ payload: playerPayload(videoId), fields: MICROFORMAT_FIELDS },
  };
  const parsed = await innertube.query(call, (response) => readMicroformat(response, videoId), scope);
  return parsed.kind === 'parsed' ? parsed.value : null;
}

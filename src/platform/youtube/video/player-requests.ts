import type { YoutubeClient } from '../../../config/environment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { InnertubeCall, InnertubeClient, ParsedResponse } from '../innertube/innertube-client.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS, type MaskVerdict } from '../innertube/field-masks.js';
import { type Microformat, type PlayerReading, readMicroformat, readPlayer, readReel } from './player-response.js';

interface PlayerEndpoint {
  path: string;
  fields: string;
  payload: (videoId: string) => Readonly<Record<string, unknown>>;
  read: (response: unknown, videoId: string) => PlayerReading;
}

const playerPayload = (videoId: string) => ({ videoId, contentCheckOk: true, racyCheckOk: true });

const PLAYER: PlayerEndpoint = { path: 'player', fields: PLAYER_FIELDS, payload: playerPayload, read: readPlayer };

/** ANDROID was recorded with the reel endpoint (January to June 2026), the others with the player endpoint. */
const ENDPOINTS: Readonly<Record<YoutubeClient, PlayerEndpoint>> = {
  VISIONOS: PLAYER,
  ANDROID_VR: PLAYER,
  ANDROID: {
    path: 'reel/reel_item_watch',
    fields: REEL_FIELDS,
    payload: (videoId) => ({ playerRequest: playerPayload(videoId), disablePlayerResponse: false }),
    read: readReel,
  },
};

/** Requests a video's player response as a client. Rejects only when the scope's signal is aborted. */
export function requestPlayer(
  innertube: InnertubeClient,
  client: YoutubeClient,
  videoId: string,
  scope: RequestScope,
): Promise<ParsedResponse<PlayerReading>> {
  const { path, fields, payload, read } = ENDPOINTS[client];
  const call: InnertubeCall = { kind: 'player', client, path, payload: payload(videoId), fields };
  return innertube.query(call, (response) => read(response, videoId), scope, judgeMask);
}

/**
 * A mask that a client supports only in part could remove the captions, so that the video seems to have none. Until a
 * masked response has contained tracks, one without tracks is doubtful.
 */
function judgeMask({ kind }: PlayerReading, maskProved: boolean): MaskVerdict {
  if (kind === 'tracks') return 'proof';
  return !maskProved && (kind === 'no-captions' || kind === 'unavailable' || kind === 'unknown-status')
    ? 'doubtful'
    : 'fine';
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

import type { YoutubeClient } from '../../../config/environment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { InnertubeCall } from '../innertube/clients.js';
import { parsed, type InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { isClientRefused } from './client-fallback.js';
import type { VisitorExchange } from '../innertube/visitor-data-cache.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS } from '../innertube/field-masks.js';
import type { WebProof } from '../po-token/web-proofs.js';
import { type PlayerReading, readPlayer, readPublishDate, readReel } from './player-response.js';

interface PlayerEndpoint {
  path: string;
  fields: string;
  payload: (videoId: string, proof: WebProof | null) => Readonly<Record<string, unknown>>;
  read: (response: unknown, videoId: string) => PlayerReading;
}

const playerPayload = (videoId: string) => ({ videoId, contentCheckOk: true, racyCheckOk: true });

const PLAYER: PlayerEndpoint = {
  path: 'player',
  fields: PLAYER_FIELDS,
  payload: playerPayload,
  read: readPlayer,
};

/** The reel endpoint plays videos made for kids, which VISIONOS refuses (recorded in June 2026). */
const ENDPOINTS: Readonly<Record<YoutubeClient, PlayerEndpoint>> = {
  VISIONOS: PLAYER,
  ANDROID: PLAYER,
  IOS: PLAYER,
  ANDROID_VR: PLAYER,
  WEB: {
    ...PLAYER,
    payload: (videoId, proof) => ({
      ...playerPayload(videoId),
      ...(proof && {
        serviceIntegrityDimensions: { poToken: proof.poToken },
        playbackContext: { contentPlaybackContext: { signatureTimestamp: proof.signatureTimestamp } },
      }),
    }),
  },
  ANDROID_REEL: {
    path: 'reel/reel_item_watch',
    fields: REEL_FIELDS,
    payload: (videoId) => ({ playerRequest: playerPayload(videoId), disablePlayerResponse: false }),
    read: readReel,
  },
};

/** A request for a video's player response. */
interface PlayerRequest {
  client: YoutubeClient;
  videoId: string;
  scope: RequestScope;
  /** What WEB sends in addition; null for the other clients. */
  proof: WebProof | null;
}

/** A reading, and the visitor data with which it was requested. */
interface PlayerAnswer {
  reading: PlayerReading;
  visitor: VisitorExchange;
  /** Whether nothing was known to be refused at the egress before this response. */
  isFirst: boolean;
}

/**
 * Requests a player response, and once more with other visitor data when the platform refuses this one. Rejects only when the
 * scope's signal is aborted.
 *
 * @param onRefused called with the first response when there is a second one
 */
export async function requestPlayer(
  innertube: InnertubeClient,
  request: PlayerRequest,
  onRefused: (kind: PlayerReading['kind']) => void,
): Promise<ParsedResponse<PlayerReading>> {
  const { client, scope } = request;
  let answer = await send(innertube, request);
  if (answer.kind === 'parsed') {
    const { reading, visitor, isFirst } = answer.value;
    const isRefused = reading.kind === 'bot-check' || reading.kind === 'session-refused';
    const isReplaced = isRefused && innertube.replaceVisitorData(scope.egress, client, visitor);
    // What finds out about a refusal sends as little as possible; later requests send the new data.
    if (isReplaced && isFirst) {
      onRefused(reading.kind);
      const second = await send(innertube, request);
      // Not sent in time: the refusal is what is known.
      if (second.kind !== 'busy') answer = second;
    }
  }
  return answer.kind === 'parsed' ? { kind: 'parsed', value: answer.value.reading } : answer;
}

function send(
  innertube: InnertubeClient,
  { client, videoId, scope, proof }: PlayerRequest,
): Promise<ParsedResponse<PlayerAnswer>> {
  const { path, fields, payload, read } = ENDPOINTS[client];
  let isFirst = true;
  const call: InnertubeCall = {
    ...{ kind: 'player', client, path, payload: payload(videoId, proof), fields },
    refusesClient: (response) => {
      isFirst = scope.egress.controls.video.open;
      const reading = parsed(() => read(response, videoId));
      return reading.kind === 'parsed' && isClientRefused(reading.value);
    },
  };
  const parse = (response: unknown, visitor: VisitorExchange) => ({
    reading: read(response, videoId),
    visitor,
    isFirst,
  });
  return innertube.query(call, parse, scope);
}

/** Requests a video's publish date as WEB; null when there is none. Rejects only when the scope's signal is aborted. */
export async function requestPublishDate(
  innertube: InnertubeClient,
  videoId: string,
  scope: RequestScope,
): Promise<string | null> {
  const call = { kind: 'microformat', client: 'WEB', path: 'player', fields: MICROFORMAT_FIELDS } as const;
  const payload = playerPayload(videoId);
  const response = await innertube.query({ ...call, payload }, (json) => readPublishDate(json, videoId), scope);
  return response.kind === 'parsed' ? response.value : null;
}

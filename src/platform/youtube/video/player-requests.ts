import type { YoutubeClient } from '../../../config/environment.js';
import type { InnertubeCall, InnertubeClient, RequestScope } from '../innertube/innertube-client.js';
import { postWithFieldMask, fieldMaskKey, type ParsedResponse } from '../innertube/field-mask-request.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS } from '../innertube/field-masks.js';
import type { MaskVerdict, FieldMaskSupport } from '../innertube/field-mask-support.js';
import { type Microformat, type PlayerReading, readMicroformat, readPlayer, readReel } from './player-response.js';

interface PlayerEndpoint {
  path: string;
  fields: string;
  payload: (videoId: string) => Readonly<Record<string, unknown>>;
  read: (response: unknown, videoId: string) => PlayerReading;
}

const playerPayload = (videoId: string) => ({ videoId, contentCheckOk: true, racyCheckOk: true });

const PLAYER: PlayerEndpoint = { path: 'player', fields: PLAYER_FIELDS, payload: playerPayload, read: readPlayer };

/** ANDROID is recorded through the reel (January to June 2026), the others through the player. */
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

/** Asks a client about a video. Rejects only when the work's signal is aborted. */
export function requestPlayer(
  innertube: InnertubeClient,
  fieldMasks: FieldMaskSupport,
  client: YoutubeClient,
  videoId: string,
  scope: RequestScope,
): Promise<ParsedResponse<PlayerReading>> {
  const { path, fields, payload, read } = ENDPOINTS[client];
  const call: InnertubeCall = { kind: 'player', client, path, payload: payload(videoId), fields };
  const readIt = (response: unknown) => read(response, videoId);
  return postWithFieldMask(innertube, fieldMasks, call, readIt, scope, (reading) =>
    judge(reading, fieldMasks.isProved(fieldMaskKey(call))),
  );
}

/**
 * A mask that a client only half understands could cut the captions away and leave a video that seems to have none. So
 * until tracks have come through it, an answer without them is doubtful.
 */
function judge({ kind }: PlayerReading, proved: boolean): MaskVerdict {
  if (kind === 'tracks') return 'proof';
  return !proved && (kind === 'no-captions' || kind === 'unavailable' || kind === 'unknown-status')
    ? 'doubtful'
    : 'fine';
}

/** Asks WEB when a video was published; null when it does not tell. Rejects only when the work's signal is aborted. */
export async function requestMicroformat(
  innertube: InnertubeClient,
  fieldMasks: FieldMaskSupport,
  videoId: string,
  scope: RequestScope,
): Promise<Microformat | null> {
  const call: InnertubeCall = {
    ...{ kind: 'microformat', client: 'WEB', path: 'player' },
    ...{ payload: playerPayload(videoId), fields: MICROFORMAT_FIELDS },
  };
  const parsed = await postWithFieldMask(
    innertube,
    fieldMasks,
    call,
    (response) => readMicroformat(response, videoId),
    scope,
  );
  return parsed.kind === 'parsed' ? parsed.value : null;
}

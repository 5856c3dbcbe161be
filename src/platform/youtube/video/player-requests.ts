import type { YoutubeClient } from '../../../config/environment.js';
import type { InnertubeCall, InnertubeClient, Work } from '../innertube/innertube-client.js';
import { askMasked, maskKey, type Told } from '../innertube/field-mask-request.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS } from '../innertube/field-masks.js';
import type { MaskVerdict, PartialResponses } from '../innertube/field-mask-support.js';
import { type Microformat, type PlayerReading, readMicroformat, readPlayer, readReel } from './player-response.js';

interface PlayerEndpoint {
  path: string;
  fields: string;
  payload: (videoId: string) => Readonly<Record<string, unknown>>;
  read: (response: unknown, videoId: string) => PlayerReading;
}

const askFor = (videoId: string) => ({ videoId, contentCheckOk: true, racyCheckOk: true });

const PLAYER: PlayerEndpoint = { path: 'player', fields: PLAYER_FIELDS, payload: askFor, read: readPlayer };

/** ANDROID is recorded through the reel (January to June 2026), the others through the player. */
const ENDPOINTS: Readonly<Record<YoutubeClient, PlayerEndpoint>> = {
  VISIONOS: PLAYER,
  ANDROID_VR: PLAYER,
  ANDROID: {
    path: 'reel/reel_item_watch',
    fields: REEL_FIELDS,
    payload: (videoId) => ({ playerRequest: askFor(videoId), disablePlayerResponse: false }),
    read: readReel,
  },
};

/** Asks a client about a video. Rejects only when the work's signal is aborted. */
export function askPlayer(
  innertube: InnertubeClient,
  partial: PartialResponses,
  client: YoutubeClient,
  videoId: string,
  work: Work,
): Promise<Told<PlayerReading>> {
  const { path, fields, payload, read } = ENDPOINTS[client];
  const call: InnertubeCall = { kind: 'player', client, path, payload: payload(videoId), fields };
  const readIt = (response: unknown) => read(response, videoId);
  return askMasked(innertube, partial, call, readIt, work, (reading) =>
    judge(reading, partial.isProved(maskKey(call))),
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
export async function askMicroformat(
  innertube: InnertubeClient,
  partial: PartialResponses,
  videoId: string,
  work: Work,
): Promise<Microformat | null> {
  const call: InnertubeCall = {
    ...{ kind: 'microformat', client: 'WEB', path: 'player' },
    ...{ payload: askFor(videoId), fields: MICROFORMAT_FIELDS },
  };
  const told = await askMasked(innertube, partial, call, (response) => readMicroformat(response, videoId), work);
  return told.kind === 'told' ? told.value : null;
}

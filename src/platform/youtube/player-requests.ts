import type { YoutubeClient } from '../../config/environment.js';
import type { FailedAnswer } from './answer.js';
import type { InnertubeCall, InnertubeClient, Work } from './innertube-client.js';
import type { MaskVerdict, PartialResponses } from './partial-responses.js';
import { MICROFORMAT_FIELDS, PLAYER_FIELDS, REEL_FIELDS } from './partial-fields.js';
import { type Microformat, type PlayerReading, readMicroformat, readPlayer, readReel } from './player-response.js';
import { UnreadableError } from './unreadable.js';

/** What came of asking one client about one video. */
export type PlayerAnswer =
  | { kind: 'reading'; reading: PlayerReading }
  /** JSON that is no player's answer. */
  | { kind: 'misread'; expected: string }
  | FailedAnswer;

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
): Promise<PlayerAnswer> {
  const { path, fields, payload, read } = ENDPOINTS[client];
  const key = `player ${client}`;
  const call: InnertubeCall = { kind: 'player', client, path, payload: payload(videoId), fields: null };
  const ask = async (masked: boolean): Promise<PlayerAnswer> => {
    const answer = await innertube.post({ ...call, fields: masked ? fields : null }, work);
    if (answer.kind !== 'json') return answer;
    try {
      return { kind: 'reading', reading: read(answer.value, videoId) };
    } catch (error) {
      if (error instanceof UnreadableError) return { kind: 'misread', expected: error.expected };
      throw error;
    }
  };
  return partial.read(key, ask, (answer) => judge(answer, partial.isProved(key)));
}

/**
 * A mask that a client only half understands could cut the captions away and leave a video that seems to have none. So
 * until tracks have come through it, an answer without them is doubtful; and a refused or unreadable one always is.
 */
function judge(answer: PlayerAnswer, proved: boolean): MaskVerdict {
  if (answer.kind === 'http-error') return answer.status === 400 ? 'doubtful' : 'failed';
  if (answer.kind === 'misread') return 'doubtful';
  if (answer.kind !== 'reading') return 'failed';
  const { kind } = answer.reading;
  if (kind === 'tracks') return 'proof';
  return !proved && (kind === 'no-captions' || kind === 'unavailable' || kind === 'unknown-status')
    ? 'doubtful'
    : 'fine';
}

/** Asks WEB when a video was published; null when it does not tell. Rejects only when the work's signal is aborted. */
export async function askMicroformat(
  innertube: InnertubeClient,
  videoId: string,
  work: Work,
): Promise<Microformat | null> {
  const answer = await innertube.post(
    { kind: 'microformat', client: 'WEB', path: 'player', payload: askFor(videoId), fields: MICROFORMAT_FIELDS },
    work,
  );
  if (answer.kind !== 'json') return null;
  try {
    return readMicroformat(answer.value, videoId);
  } catch (error) {
    if (error instanceof UnreadableError) return null;
    throw error;
  }
}

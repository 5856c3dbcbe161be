import { NO_DETAILS, type VideoDetails, type VideoKind } from '../../../domain/transcript.js';
import {
  asArray,
  asCount,
  asNumber,
  asString,
  at,
  isObject,
  plainWords,
  textOf,
  UnreadableError,
} from '../response-parsing.js';
import { readTracks, type PlayerTrack, type TrackDefaults } from './player-tracks.js';
import { readInstant } from '../channel/displayed-values.js';
import { largestThumbnail } from '../channel/listed-upload.js';

/** The content of a player response. Every kind but `tracks` is a reason for having no text. */
export type PlayerReading =
  /** `tracks` is never empty; `details.captionTracks` lists the same. */
  | { kind: 'tracks'; details: VideoDetails; tracks: PlayerTrack[]; defaults: TrackDefaults }
  /** Playable without captions: a fact about the video, not a refusal. */
  | { kind: 'no-captions'; details: VideoDetails }
  /** The platform refuses the caller, not the video: other visitor data, another client or another egress may be served. */
  | { kind: 'bot-check' | 'session-refused' }
  /** The platform no longer serves this version of the client: not about the video. */
  | { kind: 'client-retired' }
  /** The response is about another video, as some refusals are: try the next client, report a block. */
  | { kind: 'other-video' }
  | {
      kind: 'age-restricted' | 'private' | 'members-only' | 'unavailable' | 'live' | 'upcoming';
      details: VideoDetails;
    }
  /**
   * Not playable on this client, but possibly on another. Includes videos that require Premium or a purchase or are blocked
   * in this country: no field distinguishes these, and none of them is a channel membership. When no client plays the
   * video, it is unavailable.
   */
  | { kind: 'unplayable'; reason: string; details: VideoDetails }
  | { kind: 'unknown-status'; status: string; reason: string; details: VideoDetails };

/**
 * Reads a response of `/youtubei/v1/player`.
 *
 * @param videoId the requested video
 * @throws UnreadableError
 */
export function readPlayer(response: unknown, videoId: string): PlayerReading {
  const playability = at(response, 'playabilityStatus');
  if (hasCaptcha(playability)) return { kind: 'session-refused' };
  const status = asString(at(playability, 'status'));
  if (status === null) throw new UnreadableError('a playability status');
  const video = at(response, 'videoDetails');
  const succeeded = asString(at(video, 'videoId'));
  if (succeeded !== null && succeeded !== videoId) return { kind: 'other-video' };

  if (status !== 'OK') return withDetails(readPlayabilityProblem(status, playability, video), video);
  // Without them the response is incomplete, and missing captions would mean nothing.
  if (succeeded === null) throw new UnreadableError('the details of a video');
  if (isUpcoming(video, playability)) return withDetails({ kind: 'upcoming' }, video);
  if (at(video, 'isLive') === true) return withDetails({ kind: 'live' }, video);
  return readCaptions(at(response, 'captions'), video);
}

/**
 * Reads a response of `/youtubei/v1/reel/reel_item_watch`. It is an empty object for a video that is unavailable (seen June
 * 2026).
 *
 * @param videoId the requested video
 * @throws UnreadableError
 */
export function readReel(response: unknown, videoId: string): PlayerReading {
  if (isObject(response) && Object.keys(response).every((key) => key === 'responseContext')) {
    return { kind: 'unavailable', details: NO_DETAILS };
  }
  return readPlayer(at(response, 'playerResponse'), videoId);
}

function readCaptions(captions: unknown, video: unknown): PlayerReading {
  const details = readDetails(video);
  if (captions === undefined) return { kind: 'no-captions', details: { ...details, captionTracks: [] } };
  const { tracks, defaults } = readTracks(captions);
  const captionTracks = tracks.map(({ track }) => track);
  if (tracks.length === 0) return { kind: 'no-captions', details: { ...details, captionTracks } };
  return { kind: 'tracks', details: { ...details, captionTracks }, tracks, defaults };
}

function isUpcoming(video: unknown, playability: unknown): boolean {
  const slate = at(playability, 'liveStreamability', 'liveStreamabilityRenderer', 'offlineSlate');
  return (
    at(video, 'isUpcoming') === true || at(slate, 'liveStreamOfflineSlateRenderer', 'scheduledStartTime') !== undefined
  );
}

function withDetails(problem: PlayabilityProblem, video: unknown): PlayerReading {
  const details = readDetails(video);
  switch (problem.kind) {
    case 'bot-check':
    case 'session-refused':
    case 'client-retired':
      return problem;
    case 'live':
    case 'upcoming':
      return { kind: problem.kind, details: { ...details, kind: problem.kind, durationSeconds: null } };
    case 'unplayable':
    case 'unknown-status':
      return { ...problem, details };
    case 'age-restricted':
    case 'private':
    case 'members-only':
    case 'unavailable':
      return { ...problem, details };
  }
}

/** A running stream has the length 0. */
function readDetails(video: unknown): VideoDetails {
  const seconds = asCount(at(video, 'lengthSeconds'));
  return {
    ...NO_DETAILS,
    title: asString(at(video, 'title')),
    thumbnailUrl: largestThumbnail(asArray(at(video, 'thumbnail', 'thumbnails'))),
    durationSeconds: seconds === 0 ? null : seconds,
    viewCount: asCount(at(video, 'viewCount')),
    kind: at(video, 'isLive') === true ? 'live' : null,
  };
}

/** Fields of the WEB client's player response only. */
export interface Microformat {
  /** Exact, ISO 8601 in UTC. */
  publishedAt: string | null;
  kind: VideoKind | null;
}

/**
 * Reads the microformat of a WEB `/youtubei/v1/player` response of any playability.
 *
 * @param videoId the requested video
 * @throws UnreadableError when it is missing or belongs to another video
 */
export function readMicroformat(response: unknown, videoId: string): Microformat {
  const microformat = at(response, 'microformat', 'playerMicroformatRenderer');
  if (!isObject(microformat)) throw new UnreadableError('a microformat');
  const video = at(response, 'videoDetails');
  const succeeded = asString(at(video, 'videoId')) ?? asString(at(microformat, 'externalVideoId'));
  if (succeeded !== null && succeeded !== videoId) throw new UnreadableError('the microformat of the requested video');
  const times = [at(microformat, 'publishDate'), at(microformat, 'uploadDate')];
  const publishedAt = times.map((time) => readInstant(asString(time) ?? '')).find((time) => time !== null) ?? null;
  return { publishedAt, kind: readKind(video, microformat) };
}

function readKind(video: unknown, microformat: unknown): VideoKind | null {
  if (at(video, 'isUpcoming') === true) return 'upcoming';
  if (at(video, 'isLive') === true || at(microformat, 'liveBroadcastDetails', 'isLiveNow') === true) return 'live';
  const eligible = at(microformat, 'isShortsEligible');
  if (typeof eligible !== 'boolean') return null;
  return eligible ? 'short' : 'video';
}

/** Merges the details of two responses about one video; the newer value takes precedence. */
export function mergeDetails(known: VideoDetails, parsed: Partial<VideoDetails>): VideoDetails {
  return {
    title: parsed.title ?? known.title,
    thumbnailUrl: parsed.thumbnailUrl ?? known.thumbnailUrl,
    publishedAt: parsed.publishedAt ?? known.publishedAt,
    durationSeconds: parsed.durationSeconds ?? known.durationSeconds,
    viewCount: parsed.viewCount ?? known.viewCount,
    kind: parsed.kind ?? known.kind,
    captionTracks: fuller(parsed.captionTracks ?? null, known.captionTracks),
  };
}

/** An empty list from one client does not replace the tracks that another one returned. */
function fuller(
  parsed: VideoDetails['captionTracks'],
  known: VideoDetails['captionTracks'],
): VideoDetails['captionTracks'] {
  if (parsed === null || (parsed.length === 0 && known !== null)) return known;
  return parsed;
}

/** Why a player response with a status other than OK has no captions. */
type PlayabilityProblem =
  | { kind: 'bot-check' | 'session-refused' | 'client-retired' }
  | { kind: 'age-restricted' | 'private' | 'members-only' | 'unavailable' | 'live' | 'upcoming' }
  | { kind: 'unplayable'; reason: string }
  | { kind: 'unknown-status'; status: string; reason: string };

// After too many requests a session gets "This content isn't available, try again later." (reported since 2025), which
// refuses the caller and not the video.
const REFUSED_CALLER =
  /not a bot|content isn't available,? (?:please )?try again later|unusual traffic|rate.limit|^please sign in$/m;
// Seen for sessions and tokens that the platform does not accept, with the reason "Video unavailable" too (reported in 2026).
const REFUSED_SESSION = /the page needs to be reloaded/;
// "The following content is not available on this app. Watch this content on the latest version of YouTube.", "YouTube is no
// longer supported on this application or device" (reported in 2026): about the client's version, never about the video.
const RETIRED_CLIENT =
  /latest version of youtube|no longer supported (?:on|in) this (?:application|app|device)\b|not available (?:on|in) this app\b/;
const PRIVATE = /\bis (?:a )?private\b|\bprivate video\b/;
const AGE = /inappropriate for some users|confirm your age|age.restricted|mature audiences/;
// "This video is available to this channel's members on level: …" (seen), "Join this channel to get access to
// members-only content …". Music Premium members are not members of a channel.
const MEMBERS = /channel's members|members.only|join this channel/;
const ANNOUNCED = /\b(?:live event|live stream|premiere) will begin|\bpremieres in\b|\bwill begin (?:in|shortly)/;
const REMOVED = /removed by|has been removed|been terminated|no longer available|recording is not available/;
const FAILED = /try again|something went wrong|an error occurred|unknown error/;

/** Reads the playability of a status other than OK: its fields first, then its text, which is English (`hl=en`). */
export function readPlayabilityProblem(status: string, playability: unknown, video: unknown): PlayabilityProblem {
  const reason = asString(at(playability, 'reason')) ?? textOf(at(playability, 'reason')) ?? '';
  const words = plainWords(textsOf(playability, reason));

  if (REFUSED_SESSION.test(words)) return { kind: 'session-refused' };
  if (asNumber(at(playability, 'desktopLegacyAgeGateReason')) !== null) return { kind: 'age-restricted' };
  if (status === 'AGE_VERIFICATION_REQUIRED' || status === 'AGE_CHECK_REQUIRED') return { kind: 'age-restricted' };
  if (REFUSED_CALLER.test(words)) return { kind: 'bot-check' };
  if (RETIRED_CLIENT.test(words)) return { kind: 'client-retired' };
  if (at(video, 'isPrivate') === true || PRIVATE.test(words)) return { kind: 'private' };
  if (MEMBERS.test(words)) return { kind: 'members-only' };
  if (AGE.test(words)) return { kind: 'age-restricted' };
  if (REMOVED.test(words)) return { kind: 'unavailable' };
  if (status === 'LIVE_STREAM_OFFLINE') return offlineStream(words, video);
  if (at(video, 'isUpcoming') === true || ANNOUNCED.test(words)) return { kind: 'upcoming' };
  if (at(video, 'isLive') === true) return { kind: 'live' };
  // Without video details the platform requires this caller to sign in (recorded); with them the reason is unknown.
  if (status === 'LOGIN_REQUIRED' && video === undefined) return { kind: 'bot-check' };
  if (FAILED.test(words)) return { kind: 'unknown-status', status, reason };
  if (status === 'ERROR') return { kind: 'unavailable' };
  if (status === 'UNPLAYABLE' || status === 'CONTENT_CHECK_REQUIRED') return { kind: 'unplayable', reason };
  return { kind: 'unknown-status', status, reason };
}

/** A stream that has ended is offline until its recording is available, which gets its captions later. */
function offlineStream(words: string, video: unknown): PlayabilityProblem {
  const ended = /\bhas ended\b|\bprocessing\b/.test(words);
  return { kind: ended || at(video, 'isLive') === true ? 'live' : 'upcoming' };
}

/** Whether the platform shows a captcha in place of the video, which it does at any status (reported in 2026). */
function hasCaptcha(playability: unknown): boolean {
  return at(playability, 'errorScreen', 'playerCaptchaViewModel') !== undefined;
}

/** All texts of the playability. */
function textsOf(playability: unknown, reason: string): string {
  const errorScreen = at(playability, 'errorScreen');
  const screens = isObject(errorScreen) ? Object.values(errorScreen) : [];
  const messages = asArray(at(playability, 'messages')).map(asString);
  const shown = screens.flatMap((screen) => [textOf(at(screen, 'reason')), textOf(at(screen, 'subreason'))]);
  return [reason, ...messages, ...shown].filter((text) => text !== null).join('\n');
}

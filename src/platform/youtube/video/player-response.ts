import { NO_DETAILS, type VideoDetails, type VideoKind } from '../../../domain/transcript.js';
import { asArray, asCount, asString, at, isObject, UnreadableError } from '../response-parsing.js';
import { hasCaptcha, readPlayabilityProblem, type PlayabilityProblem } from './playability.js';
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

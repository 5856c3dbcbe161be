import { NO_DETAILS, type VideoDetails } from '../../../domain/transcript.js';
import { kindByDuration, largestThumbnail, readInstant } from '../channel/listed-upload.js';
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
import type { FindingKind } from './client-fallback.js';
import { type PlayerTrack, readTracks, type TrackDefaults } from './player-tracks.js';

export type PlayerResult =
  /** `tracks` is never empty; `details.captionTracks` lists the same. */
  | { kind: 'tracks'; details: VideoDetails; tracks: PlayerTrack[]; defaults: TrackDefaults }
  /** `reason`: every text that the platform gave, a line each. `country`: of the caller's address, where the exchange names it. */
  | { kind: FindingKind; details: VideoDetails; status: string; reason: string; country?: string | null };

/**
 * Reads a response of `/youtubei/v1/player`.
 *
 * @param videoId the requested video
 * @throws UnreadableError
 */
export function readPlayer(response: unknown, videoId: string): PlayerResult {
  const playability = at(response, 'playabilityStatus');
  const video = at(response, 'videoDetails');
  const status = asString(at(playability, 'status')) ?? '';
  const { texts, hasCaptcha } = readScreens(playability);
  const problem = (kind: FindingKind, details = readDetails(video)): PlayerResult => {
    const isOpen = kind === 'upcoming' || (kind === 'live' && at(video, 'isLive') === true);
    const reason = texts.slice(0, REASON_LENGTH_MAX);
    return { kind, status, reason, details: isOpen ? { ...details, kind, durationSeconds: null } : details };
  };
  // The platform shows a captcha in place of the video at any status (reported in 2026).
  if (hasCaptcha) return problem('session-refused');
  if (status === '') throw new UnreadableError('a playability status');
  const answeredId = asString(at(video, 'videoId'));
  if (answeredId !== null && answeredId !== videoId)
    return problem(isUpdateNotice(video) ? 'client-retired' : 'other-video', NO_DETAILS);

  if (status !== 'OK') return problem(readPlayabilityProblem(status, plainWords(texts), playability, video));
  // Without them the response is incomplete, and missing captions would mean nothing.
  if (answeredId === null) throw new UnreadableError('the details of a video');
  if (isUpcoming(video, playability)) return problem('upcoming');
  if (at(video, 'isLive') === true) return problem('live');
  const captions = at(response, 'captions');
  const { tracks, defaults } = captions === undefined ? { tracks: [], defaults: null } : readTracks(captions);
  const details = { ...readDetails(video), captionTracks: tracks.map(({ track }) => track) };
  if (defaults !== null && tracks.length > 0) return { kind: 'tracks', details, tracks, defaults };
  return problem(isJustEnded(video) ? 'live' : 'no-captions', details);
}

/**
 * Reads a response of `/youtubei/v1/reel/reel_item_watch`. It is an empty object for a video that is unavailable (seen June
 * 2026).
 *
 * @param videoId the requested video
 * @throws UnreadableError
 */
export function readReel(response: unknown, videoId: string): PlayerResult {
  if (isObject(response) && Object.keys(response).every((key) => key === 'responseContext'))
    return { kind: 'unavailable', details: NO_DETAILS, status: '', reason: '' };
  return readPlayer(at(response, 'playerResponse'), videoId);
}

/** A retired client gets a video that tells to update the app (its ID is from a maintained client's source, 2026). */
function isUpdateNotice(video: unknown): boolean {
  return at(video, 'videoId') === 'aQvGIIdgFDM' || RETIRED_CLIENT.test(plainWords(asString(at(video, 'title')) ?? ''));
}

/** Its recording is not finished, and the captions come later. */
function isJustEnded(video: unknown): boolean {
  return at(video, 'isPostLiveDvr') === true;
}

function isUpcoming(video: unknown, playability: unknown): boolean {
  const slate = at(playability, 'liveStreamability', 'liveStreamabilityRenderer', 'offlineSlate');
  return (
    at(video, 'isUpcoming') === true || at(slate, 'liveStreamOfflineSlateRenderer', 'scheduledStartTime') !== undefined
  );
}

/** The platform accepts 5,000 characters, and tags of 500 characters together. */
const DESCRIPTION_CHARACTERS_MAX = 10_000;
const TAGS_MAX = 500;

/** A running stream has the length 0. */
function readDetails(video: unknown): VideoDetails {
  if (!isObject(video)) return NO_DETAILS;
  const durationSeconds = asCount(at(video, 'lengthSeconds')) || null;
  const [id, name] = [at(video, 'channelId'), at(video, 'author')].map(asString);
  return {
    ...NO_DETAILS,
    channel: id && name ? { id, name } : null,
    description: (asString(at(video, 'shortDescription')) ?? '').slice(0, DESCRIPTION_CHARACTERS_MAX),
    tags: asArray(at(video, 'keywords'))
      .slice(0, TAGS_MAX)
      .flatMap((tag) => asString(tag) ?? []),
    title: asString(at(video, 'title')),
    thumbnailUrl: largestThumbnail(asArray(at(video, 'thumbnail', 'thumbnails'))),
    durationSeconds,
    viewCount: asCount(at(video, 'viewCount')),
    kind:
      at(video, 'isLive') === true
        ? 'live'
        : at(video, 'isUpcoming') === true
          ? 'upcoming'
          : kindByDuration(durationSeconds),
  };
}

/**
 * Reads the exact publish date in a response of `player` as WEB; null for none. `isShortsEligible` is not read: it states
 * which videos are eligible as Shorts, and the list of Shorts which are Shorts.
 *
 * @throws UnreadableError for a response about another video
 */
export function readPublishDate(response: unknown, videoId: string): string | null {
  const microformat = at(response, 'microformat', 'playerMicroformatRenderer');
  if (!isObject(microformat)) throw new UnreadableError('the microformat of a video');
  const ids = [at(microformat, 'externalVideoId'), at(response, 'videoDetails', 'videoId')].map(asString);
  if (ids.some((id) => id !== null && id !== videoId)) throw new UnreadableError('that of the requested video');
  const times = [at(microformat, 'publishDate'), at(microformat, 'uploadDate')];
  return times.map((time) => readInstant(asString(time) ?? '')).find((time) => time !== null) ?? null;
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
    // An empty list from one client does not replace the tracks that another one returned.
    captionTracks: parsed.captionTracks?.length
      ? parsed.captionTracks
      : (known.captionTracks ?? parsed.captionTracks ?? null),
    channel: parsed.channel ?? known.channel,
    // A client that leaves them out says nothing about them.
    description: parsed.description || (known.description ?? parsed.description ?? null),
    tags: parsed.tags?.length ? parsed.tags : (known.tags ?? parsed.tags ?? null),
  };
}

// After too many requests a session gets "This content isn't available, try again later." (reported since 2025), which
// refuses the caller and not the video.
const REFUSED_CALLER =
  /not a bot|content isn't available,? (?:please )?try again later|unusual traffic|rate.limit|^please sign in$/m;
// Seen for sessions and tokens that the platform does not accept, with the reason "Video unavailable" too (reported in 2026).
const REFUSED_SESSION = /the page needs to be reloaded/;
// "The following content is not available on this app. Watch this content on the latest version of YouTube.", "YouTube is no
// longer supported on this application or device" (reported in 2026): about the client's version, never about the video.
const RETIRED_CLIENT =
  /latest version of youtube|no longer supported (?:on|in) this (?:application|app|device)\b|not available (?:on|in) this app\b|\bupdate (?:the|this|your) (?:youtube )?app\b/;
const PRIVATE = /\bis (?:a )?private\b|\bprivate video\b/;
const AGE = /inappropriate for some users|(?:confirm|verify) your age|age.restricted|mature audiences/;
// "This video is available to this channel's members on level: …" (seen), "Join this channel to get access to
// members-only content …". Music Premium members are not members of a channel.
const MEMBERS = /channel's members|members.only|join this channel/;
// "The uploader has not made this video available in your country", "… who has blocked it in your country on copyright grounds".
const COUNTRY = /\b(?:your|this) (?:country|region|location)\b/;
const ANNOUNCED = /\b(?:live event|live stream|premiere) will begin|\bpremieres in\b|\bwill begin (?:in|shortly)/;
// "We're processing this video. Check back later.", "This live event has ended.": the platform gives it its captions later.
const PROCESSED =
  /(?:live|event|stream|broadcast|premiere) has ended\b|^processing\b|processing (?:this |the |your )?video|(?:we're|we are|is|still|being) process(?:ing|ed)\b|check back later/m;
// A filter on the way to the platform: "… the Google Workspace administrator and/or the network administrator restrictions".
const NETWORK = /\badministrators?\b|\brestricted mode\b/;
const REMOVED = /removed by|has been removed|been terminated|no longer available|recording is not available/;
const FAILED = /try again|something went wrong|an error occurred|unknown error/;

/** Reads the playability of a status other than OK: its fields first, then its words, which are English (`hl=en`). */
function readPlayabilityProblem(status: string, words: string, playability: unknown, video: unknown): FindingKind {
  if (REFUSED_SESSION.test(words)) return 'session-refused';
  if (asNumber(at(playability, 'desktopLegacyAgeGateReason')) !== null) return 'age-restricted';
  if (status === 'AGE_VERIFICATION_REQUIRED' || status === 'AGE_CHECK_REQUIRED') return 'age-restricted';
  if (REFUSED_CALLER.test(words)) return 'bot-check';
  if (RETIRED_CLIENT.test(words)) return 'client-retired';
  if (at(video, 'isPrivate') === true || PRIVATE.test(words)) return 'private';
  if (MEMBERS.test(words)) return 'members-only';
  if (AGE.test(words)) return 'age-restricted';
  if (NETWORK.test(words)) return 'network-restricted';
  if (COUNTRY.test(words)) return 'country-restricted';
  if (REMOVED.test(words)) return 'unavailable';
  if (isJustEnded(video) || PROCESSED.test(words)) return 'live';
  if (status === 'LIVE_STREAM_OFFLINE') return at(video, 'isLive') === true ? 'live' : 'upcoming';
  if (at(video, 'isUpcoming') === true || ANNOUNCED.test(words)) return 'upcoming';
  if (at(video, 'isLive') === true) return 'live';
  // Without video details the platform requires this caller to sign in (recorded); with them the reason is unknown.
  if (status === 'LOGIN_REQUIRED' && video === undefined) return 'bot-check';
  if (FAILED.test(words)) return 'unknown-status';
  if (status === 'ERROR') return 'unavailable';
  return status === 'UNPLAYABLE' || status === 'CONTENT_CHECK_REQUIRED' ? 'unplayable' : 'unknown-status';
}

const REASON_LENGTH_MAX = 1_000;
/** Screens were seen up to 6 levels deep, with some dozens of nodes on each. */
const DEPTH_MAX = 12;
const NODES_PER_LEVEL_MAX = 300;
/** `playerCaptchaViewModel` is reported (2026). */
const CAPTCHA = /captcha(?:ViewModel|Renderer)$/i;
/** What a click leads to, and the title and the trailer of the video: their texts do not say why it is not playable. */
const OTHER_TEXTS = /button|endpoint|command|trailer|^itemtitle$/i;

/**
 * Reads every text of the playability, outer ones first, and whether it has a captcha, at any path: the screens have several
 * forms, and new ones come without notice.
 */
function readScreens(playability: unknown): { texts: string; hasCaptcha: boolean } {
  const texts = new Set<string>();
  let hasCaptcha = false;
  let nodes: [string, unknown][] = [['', playability]];
  for (let depth = 0; depth < DEPTH_MAX && nodes.length > 0; depth++) {
    for (const [name, node] of nodes) {
      hasCaptcha ||= CAPTCHA.test(name);
      // A value without a space is an identifier, a URL or a token.
      const text = typeof node === 'string' && (name === 'reason' || node.includes(' ')) ? node : textOf(node);
      if (text !== null) texts.add(text);
    }
    nodes = nodes
      .flatMap(([, node]) => (typeof node === 'object' && node !== null ? Object.entries(node) : []))
      // The parts of `runs` are one text.
      .filter(([name]) => name !== 'runs' && !OTHER_TEXTS.test(name))
      .slice(0, NODES_PER_LEVEL_MAX);
  }
  return { texts: [...texts].join('\n'), hasCaptcha };
}

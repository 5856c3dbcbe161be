import { asArray, asNumber, asString, at, isObject, textOf, plainWords } from '../response-parsing.js';

/** Why a player response with a status other than OK has no captions. */
export type PlayabilityProblem =
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
export function hasCaptcha(playability: unknown): boolean {
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

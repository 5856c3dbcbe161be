import { BASE_DATE, type Client, type Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';
import { EVENT_START } from './playlist-page.js';

/** The `playabilityStatus` of a player response, and the parts of the response that accompany it. */
export interface Playability {
  status: JsonObject;
  details: boolean;
  captions: boolean;
}

export function playabilityOf(video: Video | undefined, client: Client): Playability {
  if (!video || video.errorOn?.includes(client)) return bare({ status: 'ERROR', reason: 'This video is unavailable' });
  if (video.unplayableOn?.includes(client)) {
    return { status: { status: 'UNPLAYABLE', reason: 'This video is not available' }, details: true, captions: false };
  }
  switch (video.state) {
    case 'ok':
      return { status: { status: 'OK', playableInEmbed: true }, details: true, captions: true };
    case 'live':
      return {
        status: { status: 'OK', playableInEmbed: true, ...streamability(video) },
        details: true,
        captions: false,
      };
    case 'upcoming':
      return { status: offline(video), details: true, captions: false };
    case 'deleted':
      return bare({ status: 'ERROR', reason: 'This video is unavailable' });
    case 'private':
      return bare({
        status: 'LOGIN_REQUIRED',
        reason: 'This video is private',
        messages: ['This is a private video. Please sign in to verify that you may see it.'],
      });
    case 'age-gated':
      return {
        status: {
          status: 'LOGIN_REQUIRED',
          reason: 'This video may be inappropriate for some users.',
          desktopLegacyAgeGateReason: 1,
          reasonTitle: 'You must sign in to view this video',
        },
        details: true,
        captions: false,
      };
    case 'members-only':
      return refused(
        "This video is available to this channel's members on level: Deckhand (or any higher priced level).",
      );
    case 'premium':
      return refused('This video is only available to Music Premium members');
    case 'country-blocked':
      return refused('The uploader has not made this video available in your country');
  }
}

/** Refuses a caller that looks like a bot. */
export function botCheck(): JsonObject {
  const reason = 'Sign in to confirm you’re not a bot';
  return {
    status: 'LOGIN_REQUIRED',
    reason,
    errorScreen: {
      playerErrorMessageRenderer: {
        reason: { runs: [{ text: reason }] },
        subreason: { runs: [{ text: 'This helps protect our community. ' }, { text: 'Learn more' }] },
      },
    },
    skip: { playabilityErrorSkipConfig: { skipOnPlayabilityError: false } },
  };
}

/** Refuses the session of a caller. */
export function reload(): JsonObject {
  return { status: 'UNPLAYABLE', reason: 'The page needs to be reloaded.' };
}

function bare(status: JsonObject): Playability {
  return { status, details: false, captions: false };
}

function refused(reason: string): Playability {
  return { status: { status: 'UNPLAYABLE', reason, playableInEmbed: true }, details: true, captions: false };
}

function streamability(video: Video, offlineSlate?: JsonObject): JsonObject {
  const renderer = { videoId: video.id, broadcastId: '1', pollDelayMs: '15000', ...(offlineSlate && { offlineSlate }) };
  return { liveStreamability: { liveStreamabilityRenderer: renderer } };
}

function offline(video: Video): JsonObject {
  const scheduledStartTime = String(EVENT_START.getTime() / 1_000);
  return {
    status: 'LIVE_STREAM_OFFLINE',
    reason: 'This live event will begin in 3 years.',
    playableInEmbed: true,
    ...streamability(video, { liveStreamOfflineSlateRenderer: { scheduledStartTime } }),
  };
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Relative dates as the platform writes them: whole units, rounded down, weeks only up to a month. */
const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [365 * DAY, 'year'],
  [30 * DAY, 'month'],
  [7 * DAY, 'week'],
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
  [1, 'second'],
];

/** "4 months ago", relative to the base date of the catalogue. */
export function ageText(publishedAt: Date): string {
  const seconds = Math.max(1, Math.floor((BASE_DATE.getTime() - publishedAt.getTime()) / 1_000));
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, 'second'];
  return `${counted(Math.floor(seconds / size), name)} ago`;
}

/** "No views", "1 view", "812 views", "45K views", "1.2M views". */
export function viewsText(count: number): string {
  return count === 0 ? 'No views' : count === 1 ? '1 view' : `${abbreviated(count)} views`;
}

/** "36:24", "12:00:00". */
export function clockText(durationSeconds: number): string {
  const [hours, minutes, seconds] = parts(durationSeconds);
  const twoDigits = (number: number): string => String(number).padStart(2, '0');
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(seconds)}` : `${minutes}:${twoDigits(seconds)}`;
}

function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

function parts(durationSeconds: number): [hours: number, minutes: number, seconds: number] {
  return [Math.floor(durationSeconds / HOUR), Math.floor((durationSeconds % HOUR) / MINUTE), durationSeconds % MINUTE];
}

function abbreviated(count: number): string {
  if (count < 1_000) return String(count);
  const [size, letter] = count < 1_000_000 ? [1_000, 'K'] : [1_000_000, 'M'];
  const scaled = count / size;
  return `${scaled < 10 ? Math.floor(scaled * 10) / 10 : Math.floor(scaled)}${letter}`;
}

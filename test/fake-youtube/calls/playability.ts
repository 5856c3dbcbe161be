import type { Client, Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';
import { EVENT_START } from './playlist-page.js';

/** The `playabilityStatus` of a player response, and whether the response has the details of the video. */
interface Playability {
  status: JsonObject;
  details: boolean;
}

export function playabilityOf(video: Video | undefined, client: Client): Playability {
  const playability = plainPlayabilityOf(video, client);
  return video?.interstitial ? { ...playability, status: onInterstitial(playability.status) } : playability;
}

/** Without the fields that name the reason, which stands on the screen alone. */
function onInterstitial({ status, reason }: JsonObject): JsonObject {
  const interstitialViewModel = {
    title: { content: 'Video unavailable' },
    description: { content: reason ?? '' },
  };
  const errorScreen = { playerInterstitialRenderer: { content: { interstitialViewModel } } };
  return { status: status ?? '', reason: 'Video unavailable', errorScreen };
}

function plainPlayabilityOf(video: Video | undefined, client: Client): Playability {
  const bare = (status: string, reason: string, more: JsonObject = {}): Playability => ({
    status: { status, reason, ...more },
    details: false,
  });
  const detailed = (status: JsonObject): Playability => ({ status, details: true });
  const refused = (reason: string): Playability => detailed({ status: 'UNPLAYABLE', reason, playableInEmbed: true });
  if (!video || video.errorOn?.includes(client)) return bare('ERROR', 'This video is unavailable');
  if (video.unplayableOn?.includes(client)) return refused('This video is not available');
  switch (video.state) {
    case 'ok':
      return detailed({ status: 'OK', playableInEmbed: true });
    case 'live':
      return detailed({ status: 'OK', playableInEmbed: true, ...streamability(video) });
    case 'upcoming':
      return detailed(offline(video));
    case 'deleted':
      return bare('ERROR', 'This video is unavailable');
    case 'private':
      return bare('LOGIN_REQUIRED', 'This video is private', {
        messages: ['This is a private video. Please sign in to verify that you may see it.'],
      });
    case 'age-gated':
      return detailed({
        status: 'LOGIN_REQUIRED',
        reason: 'This video may be inappropriate for some users.',
        desktopLegacyAgeGateReason: 1,
      });
    case 'members-only':
      return refused(
        "This video is available to this channel's members on level: Deckhand (or any higher priced level).",
      );
    case 'processing':
      return refused("We're processing this video. Check back later.");
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

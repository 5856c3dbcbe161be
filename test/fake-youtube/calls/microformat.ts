import type { Channel, Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';
import { channelPath } from './channel-page.js';
import { EVENT_START } from './playlist-page.js';

/** Returned to the WEB client only: the exact dates, and whether the video is a Short. */
export function microformat(channel: Channel, video: Video): JsonObject {
  const published = isoWithOffset(video.publishedAt);
  return {
    playerMicroformatRenderer: {
      embed: { iframeUrl: `https://www.youtube.com/embed/${video.id}`, width: 1280, height: 720 },
      title: { simpleText: video.title },
      description: { simpleText: channel.description },
      lengthSeconds: String(video.durationSeconds),
      ownerProfileUrl: `http://www.youtube.com${channelPath(channel)}`,
      externalChannelId: channel.id,
      isFamilySafe: video.state !== 'age-gated',
      availableCountries: ['DE', 'FR', 'GB', 'US'],
      isUnlisted: false,
      hasYpcMetadata: false,
      viewCount: String(video.viewCount),
      category: 'Howto & Style',
      publishDate: published,
      ownerChannelName: channel.name,
      ...liveDetails(video),
      uploadDate: published,
      isShortsEligible: video.short === true,
      externalVideoId: video.id,
      canonicalUrl: `https://www.youtube.com/watch?v=${video.id}`,
    },
  };
}

function liveDetails(video: Video): JsonObject {
  const start = isoWithOffset(video.publishedAt);
  if (video.state === 'live') return { liveBroadcastDetails: { isLiveNow: true, startTimestamp: start } };
  if (video.state === 'upcoming') {
    return { liveBroadcastDetails: { isLiveNow: false, startTimestamp: isoWithOffset(EVENT_START) } };
  }
  if (!video.pastLive) return {};
  const end = isoWithOffset(new Date(video.publishedAt.getTime() + video.durationSeconds * 1_000));
  return { liveBroadcastDetails: { isLiveNow: false, startTimestamp: start, endTimestamp: end } };
}

/** In the platform's time zone, California: `2026-10-31T12:00:00-08:00`. */
function isoWithOffset(date: Date): string {
  return new Date(date.getTime() - 8 * 3_600_000).toISOString().replace('.000Z', '-08:00');
}

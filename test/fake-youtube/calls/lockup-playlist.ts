import type { Channel, Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';
import { channelPath } from './channel-page.js';
import {
  ageText,
  browseContinuation,
  clockText,
  emptyListMessage,
  EVENT_TEXT,
  firstPageFrame,
  type ListPage,
  nextPageFrame,
  thumbnails,
  viewsText,
} from './playlist-page.js';

/** A page of `lockupViewModel`s, as the platform writes them since June 2026. */
export function newList(page: ListPage): JsonObject {
  const items = page.videos.map(({ video, uploader }) => ({ lockupViewModel: lockup(video, uploader) }));
  const contents: JsonObject[] = page.nextToken === null ? items : [...items, continuation(page.nextToken)];
  if (page.offset > 0) return nextPageFrame(page, contents);
  return firstPageFrame(page, page.total === 0 ? [emptyListMessage()] : contents);
}

function continuation(token: string): JsonObject {
  return {
    continuationItemViewModel: {
      trigger: 'CONTINUATION_TRIGGER_ON_ITEM_SHOWN',
      continuationCommand: { innertubeCommand: browseContinuation(token) },
    },
  };
}

function lockup(video: Video, uploader: Channel): JsonObject {
  const badge = timeBadge(video);
  const overlays = badge ? [{ thumbnailBottomOverlayViewModel: { badges: [{ thumbnailBadgeViewModel: badge }] } }] : [];
  return {
    contentImage: { thumbnailViewModel: { image: { sources: thumbnails(video.id) }, overlays } },
    metadata: {
      lockupMetadataViewModel: {
        // A deleted video has no title.
        ...(video.state !== 'deleted' && { title: { content: titleOf(video) } }),
        metadata: { contentMetadataViewModel: { metadataRows: rows(video, uploader), delimiter: ' • ' } },
      },
    },
    contentId: video.id,
    contentType: 'LOCKUP_CONTENT_TYPE_VIDEO',
  };
}

function titleOf(video: Video): string {
  return video.state === 'private' ? 'Private video' : video.title;
}

function timeBadge(video: Video): JsonObject | undefined {
  const badge = (text: string, style: string): JsonObject => ({
    text,
    badgeStyle: `THUMBNAIL_OVERLAY_BADGE_STYLE_${style}`,
  });
  if (video.state === 'live') return badge('LIVE', 'LIVE');
  if (video.state === 'upcoming') return badge('Upcoming', 'DEFAULT');
  if (video.state === 'private' || video.state === 'deleted') return undefined;
  return badge(clockText(video.durationSeconds), 'DEFAULT');
}

function rows(video: Video, channel: Channel): JsonObject[] {
  const onTap = {
    innertubeCommand: { browseEndpoint: { browseId: channel.id, canonicalBaseUrl: channelPath(channel) } },
  };
  const commandRuns = [{ startIndex: 0, length: channel.name.length, onTap }];
  const byline = { metadataParts: [{ text: { content: channel.name, commandRuns } }] };
  const row = (...texts: string[]): JsonObject => ({ metadataParts: texts.map((content) => ({ text: { content } })) });
  const age = ageText(video);
  const badge = { badgeViewModel: { badgeText: 'Members only', badgeStyle: 'BADGE_MEMBERS_ONLY' } };
  switch (video.state) {
    case 'private':
    case 'deleted':
      return [];
    case 'live':
      return [byline, row(`${video.viewCount} watching`)];
    case 'upcoming':
      return [byline, row(`Scheduled for ${EVENT_TEXT}`)];
    case 'members-only':
      return [byline, row(age), { badges: [badge] }];
    case 'ok':
    case 'processing':
    case 'age-gated':
    case 'premium':
    case 'country-blocked':
      return [byline, row(viewsText(video.viewCount), video.pastLive ? `Streamed ${age}` : age)];
  }
}

import type { Channel, Video } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';
import { channelPath } from './channel-page.js';
import {
  ageText,
  browseContinuation,
  clockText,
  emptyListMessage,
  EVENT_START,
  EVENT_TEXT,
  firstPageFrame,
  type ListPage,
  nextPageFrame,
  thumbnails,
  viewsText,
} from './playlist-page.js';

/** A page of `playlistVideoRenderer`s, as the platform wrote them until June 2026. */
export function oldList(page: ListPage): JsonObject {
  const items = page.videos.map(({ video, uploader }) => ({ playlistVideoRenderer: videoRenderer(video, uploader) }));
  const contents: JsonObject[] = page.nextToken === null ? items : [...items, continuation(page.nextToken)];
  if (page.offset > 0) return nextPageFrame(page, contents);
  const list = {
    playlistVideoListRenderer: { contents, playlistId: page.listId, isEditable: false, canReorder: false },
  };
  return firstPageFrame(page, [page.total === 0 ? emptyListMessage() : list]);
}

function continuation(token: string): JsonObject {
  const continuationEndpoint = browseContinuation(token);
  return { continuationItemRenderer: { trigger: 'CONTINUATION_TRIGGER_ON_ITEM_SHOWN', continuationEndpoint } };
}

function videoRenderer(video: Video, uploader: Channel): JsonObject {
  return {
    videoId: video.id,
    thumbnail: { thumbnails: thumbnails(video.id) },
    title: { runs: [{ text: titleOf(video) }] },
    ...(!isDeleted(video) && { shortBylineText: byline(uploader) }),
    ...(hasLength(video) && {
      lengthText: { simpleText: clockText(video.durationSeconds) },
      lengthSeconds: String(video.durationSeconds),
    }),
    ...badges(video),
    isPlayable: !isDeleted(video),
    thumbnailOverlays: [overlay(video)],
    ...(video.state === 'upcoming' && { upcomingEventData: { startTime: String(EVENT_START.getTime() / 1_000) } }),
    ...(!isDeleted(video) && { videoInfo: videoInfo(video) }),
  };
}

function titleOf(video: Video): string {
  if (video.state === 'private') return '[Private video]';
  return video.state === 'deleted' ? '[Deleted video]' : video.title;
}

function isDeleted(video: Video): boolean {
  return video.state === 'private' || video.state === 'deleted';
}

function hasLength(video: Video): boolean {
  return !isDeleted(video) && video.state !== 'live' && video.state !== 'upcoming';
}

function byline(channel: Channel): JsonObject {
  const browseEndpoint = { browseId: channel.id, canonicalBaseUrl: channelPath(channel) };
  return { runs: [{ text: channel.name, navigationEndpoint: { browseEndpoint } }] };
}

function badges(video: Video): JsonObject {
  if (video.state === 'members-only') {
    const icon = { iconType: 'SPONSORSHIP_STAR' };
    return {
      badges: [{ metadataBadgeRenderer: { icon, style: 'BADGE_STYLE_TYPE_MEMBERS_ONLY', label: 'Members only' } }],
    };
  }
  if (video.state !== 'live') return {};
  return { badges: [{ metadataBadgeRenderer: { style: 'BADGE_STYLE_TYPE_LIVE_NOW', label: 'LIVE' } }] };
}

function overlay(video: Video): JsonObject {
  const timeStatus = (style: string, simpleText: string): JsonObject => ({
    thumbnailOverlayTimeStatusRenderer: { text: { simpleText }, style },
  });
  if (video.state === 'live') return timeStatus('LIVE', 'LIVE');
  if (video.state === 'upcoming') return timeStatus('UPCOMING', 'UPCOMING');
  if (hasLength(video)) return timeStatus('DEFAULT', clockText(video.durationSeconds));
  return { thumbnailOverlayNowPlayingRenderer: { text: { runs: [{ text: 'Now playing' }] } } };
}

function videoInfo(video: Video): JsonObject {
  if (video.state === 'upcoming') return { runs: [{ text: `Scheduled for ${EVENT_TEXT}` }] };
  if (video.state === 'live') return { runs: [{ text: String(video.viewCount) }, { text: ' watching' }] };
  if (video.state === 'members-only') return { simpleText: ageText(video) };
  const age = video.pastLive ? `Streamed ${ageText(video)}` : ageText(video);
  return { runs: [{ text: viewsText(video.viewCount) }, { text: ' • ' }, { text: age }] };
}

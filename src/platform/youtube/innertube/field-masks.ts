/*
 * `$fields` masks, a partial response for each kind of request: every field that the readers of this folder read, in the
 * notation of Google's APIs (`a/b` and `a(b,c)`, arrays not named). A field that the platform does not know makes it
 * refuse the whole mask, so only names that were recorded, or that maintained clients read, stand here.
 */

/** Top-level fields alone, as recorded for other clients: without streams and ads the rest is small. */
export const PLAYER_FIELDS = 'playabilityStatus,videoDetails,captions';

/** Streams are most of an ANDROID answer. */
export const REEL_FIELDS = `playerResponse(${PLAYER_FIELDS})`;

export const MICROFORMAT_FIELDS =
  'videoDetails(videoId,isLive,isUpcoming),' +
  'microformat/playerMicroformatRenderer(externalVideoId,publishDate,uploadDate,isShortsEligible,liveBroadcastDetails)';

const TABS = 'contents/twoColumnBrowseResultsRenderer/tabs/tabRenderer/content';

/** Only the gate is taken from `contents`, as an age-gated channel has nothing else. */
export const CHANNEL_FIELDS =
  'alerts,metadata/channelMetadataRenderer(title,externalId,vanityChannelUrl,ownerUrls),' +
  `${TABS}/sectionListRenderer/contents/channelAgeGateRenderer/channelTitle`;

const PLAYLIST_VIDEO =
  'playlistVideoRenderer(videoId,title,lengthSeconds,lengthText,videoInfo,badges,upcomingEventData,thumbnail,' +
  'thumbnailOverlays/thumbnailOverlayTimeStatusRenderer/style)';

const LOCKUP =
  'lockupViewModel(contentId,contentImage/thumbnailViewModel(image,overlays(thumbnailBottomOverlayViewModel,' +
  'thumbnailOverlayBadgeViewModel)),metadata/lockupMetadataViewModel(title,metadata/contentMetadataViewModel))';

const SHORTS =
  'shortsLockupViewModel(onTap/innertubeCommand/reelWatchEndpoint/videoId,overlayMetadata,thumbnail),' +
  'reelItemRenderer(videoId,headline,viewCountText,thumbnail)';

const ITEM =
  `${PLAYLIST_VIDEO},${LOCKUP},${SHORTS},messageRenderer/text,continuationItemRenderer/continuationEndpoint,` +
  'continuationItemViewModel/continuationCommand';

/**
 * A first page in both shapes. What is rare is taken whole, as the mask travels in the request's address: grids, which
 * lists of Shorts have, and continuation pages, which only a list with unreadable or repeated entries needs.
 */
export const UPLOADS_FIELDS =
  'alerts,onResponseReceivedActions,header/playlistHeaderRenderer/numVideosText,' +
  `${TABS}(richGridRenderer,sectionListRenderer/contents/itemSectionRenderer/contents(${ITEM},richGridRenderer,` +
  `playlistVideoListRenderer/contents(${ITEM})))`;

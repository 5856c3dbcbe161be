/*
 * `$fields` masks for partial responses: the fields that the parsers read, in the notation of Google's APIs (`a/b` and
 * `a(b,c)`, arrays not named). The platform rejects a mask with an unknown field, so only names that were recorded, or that
 * maintained clients read, are listed.
 */

/** A bot check issues visitor data that is accepted afterwards. */
const VISITOR_DATA = 'responseContext/visitorData';

/** Top-level fields, as recorded for other clients: without streams and ads the rest is small. */
export const PLAYER_FIELDS = `${VISITOR_DATA},playabilityStatus,videoDetails,captions`;

/** Streams are most of an ANDROID response. */
export const REEL_FIELDS = `${VISITOR_DATA},playerResponse(${PLAYER_FIELDS})`;

export const MICROFORMAT_FIELDS =
  'videoDetails(videoId,isLive,isUpcoming),' +
  'microformat/playerMicroformatRenderer(externalVideoId,publishDate,uploadDate,isShortsEligible,liveBroadcastDetails)';

const TABS = 'contents/twoColumnBrowseResultsRenderer/tabs/tabRenderer/content';

/** Of `contents` only the age gate, as an age-gated channel has nothing else. */
export const CHANNEL_FIELDS =
  'alerts,onResponseReceivedActions,onResponseReceivedEndpoints,metadata/channelMetadataRenderer(title,externalId,vanityChannelUrl,ownerUrls),' +
  'header(carouselHeaderRenderer/contents/topicChannelDetailsRenderer/title,interactiveTabbedHeaderRenderer/title,' +
  'pageHeaderRenderer(pageTitle,content/pageHeaderViewModel/title)),' +
  `${TABS}/sectionListRenderer/contents/channelAgeGateRenderer/channelTitle`;

const PLAYLIST_VIDEO =
  'playlistVideoRenderer(videoId,navigationEndpoint/watchEndpoint/videoId,title,lengthSeconds,lengthText,videoInfo,badges,' +
  'upcomingEventData,thumbnail,thumbnailOverlays/thumbnailOverlayTimeStatusRenderer(style,icon))';

const LOCKUP =
  'lockupViewModel(contentId,contentType,contentImage/thumbnailViewModel(image,overlays(thumbnailBottomOverlayViewModel,' +
  'thumbnailOverlayBadgeViewModel)),metadata/lockupMetadataViewModel(title,metadata/contentMetadataViewModel),' +
  'rendererContext/commandContext/onTap/innertubeCommand(watchEndpoint/videoId,reelWatchEndpoint/videoId))';

const SHORTS =
  'shortsLockupViewModel(onTap/innertubeCommand/reelWatchEndpoint/videoId,overlayMetadata,thumbnail,thumbnailViewModel),' +
  'reelItemRenderer(videoId,headline,viewCountText,thumbnail)';

const ITEM =
  `${PLAYLIST_VIDEO},${LOCKUP},${SHORTS},messageRenderer/text,continuationItemRenderer` +
  '(continuationEndpoint,button/buttonRenderer/command),' +
  'continuationItemViewModel/continuationCommand';

/**
 * A first page in both shapes. Rare parts are selected as a whole, because the mask is part of the URL: grids, which lists
 * of Shorts have, and continuation pages, which only a list with unreadable or repeated entries needs.
 */
export const UPLOADS_FIELDS =
  'alerts,onResponseReceivedActions,onResponseReceivedEndpoints,header(playlistHeaderRenderer/numVideosText,' +
  'pageHeaderRenderer/content/pageHeaderViewModel/metadata),' +
  'sidebar/playlistSidebarRenderer/items/playlistSidebarPrimaryInfoRenderer/stats,' +
  `${TABS}(richGridRenderer,sectionListRenderer/contents/itemSectionRenderer/contents(${ITEM},richGridRenderer,` +
  `playlistVideoListRenderer/contents(${ITEM})))`;

/** The same with the title of the playlist. */
export const PLAYLIST_FIELDS = `${UPLOADS_FIELDS},header/playlistHeaderRenderer/title,metadata/playlistMetadataRenderer/title`;

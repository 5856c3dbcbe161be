/*
 * Small hand-written pages in the shapes of the platform's responses, with unused fields beside the
 * ones that are read.
 */

export const CHANNEL_ID = `UC${'c'.repeat(22)}`;

const thumbnails = (videoId: string) => [
  { url: `https://i.ytimg.com/vi/${videoId}/hqdefault.jpg?sqp=small`, width: 168, height: 94 },
  { url: `https://i.ytimg.com/vi/${videoId}/hqdefault.jpg?sqp=large`, width: 336, height: 188 },
];

/** An item in the shape of playlists until May 2026. */
export function playlistVideo(videoId: string, fields: object = {}) {
  return {
    playlistVideoRenderer: {
      videoId,
      thumbnail: { thumbnails: thumbnails(videoId) },
      title: { runs: [{ text: `Video ${videoId}` }], accessibility: { accessibilityData: { label: 'x' } } },
      index: { simpleText: '1' },
      lengthText: { simpleText: '3:13' },
      lengthSeconds: '193',
      isPlayable: true,
      thumbnailOverlays: [{ thumbnailOverlayTimeStatusRenderer: { text: { simpleText: '3:13' }, style: 'DEFAULT' } }],
      videoInfo: { runs: [{ text: '1.2k views' }, { text: ' • ' }, { text: '4 months ago' }] },
      menu: { menuRenderer: { items: [] } },
      ...fields,
    },
  };
}

interface LockupFields {
  title?: string | null;
  parts?: readonly string[];
  badge?: string;
  time?: { text?: string; badgeStyle: string; icon?: object };
  /** The name of the channel in a row of its own, or in the row of the facts. */
  byline?: string;
  sameRow?: boolean;
  /** The texts of all rows, instead of `parts`. */
  rows?: readonly (readonly string[])[];
}

/** An item in the shape of playlists since June 2026. */
export function lockup(videoId: string, fields: LockupFields = {}) {
  const { title = `Video ${videoId}`, parts = ['1.2k views', '4 months ago'], badge, time, byline, sameRow } = fields;
  const textsOf = (texts: readonly string[]) => texts.map((content) => ({ text: { content } }));
  const titled = title === null ? {} : { title: { content: title } };
  const onTap = { innertubeCommand: { browseEndpoint: { browseId: CHANNEL_ID } } };
  const named = byline === undefined ? [] : [{ text: { content: byline, commandRuns: [{ startIndex: 0, onTap }] } }];
  const facts = fields.rows?.map(textsOf) ?? [textsOf(parts)];
  const rows = sameRow === true ? [[...named, ...facts.flat()]] : [named, ...facts];
  const badges = [{ badgeViewModel: { badgeText: 'Badge', badgeStyle: badge } }];
  const metadataRows = [
    ...rows.map((metadataParts) => ({ metadataParts })),
    ...(badge === undefined ? [] : [{ badges }]),
  ];
  const shown = time ?? { text: '3:13', badgeStyle: 'THUMBNAIL_OVERLAY_BADGE_STYLE_DEFAULT' };
  return {
    lockupViewModel: {
      contentImage: {
        thumbnailViewModel: {
          image: { sources: thumbnails(videoId) },
          overlays: [
            { thumbnailBottomOverlayViewModel: { badges: [{ thumbnailBadgeViewModel: shown }] } },
            { thumbnailHoverOverlayToggleActionsViewModel: { buttons: [] } },
          ],
        },
      },
      metadata: {
        lockupMetadataViewModel: {
          ...titled,
          metadata: { contentMetadataViewModel: { metadataRows, delimiter: ' • ' } },
          menuButton: {},
        },
      },
      contentId: videoId,
      contentType: 'LOCKUP_CONTENT_TYPE_VIDEO',
      rendererContext: {},
    },
  };
}

/** An item of a list of Shorts. */
export const shortsLockup = (videoId: string, place: 'thumbnail' | 'thumbnailViewModel' = 'thumbnail') => ({
  richItemRenderer: {
    content: {
      shortsLockupViewModel: {
        entityId: `shorts-shelf-item-${videoId}`,
        onTap: { innertubeCommand: { reelWatchEndpoint: { videoId } } },
        overlayMetadata: { primaryText: { content: `Short ${videoId}` }, secondaryText: { content: '2.5M views' } },
        ...(place === 'thumbnail'
          ? { thumbnail: { sources: thumbnails(videoId) } }
          : { thumbnailViewModel: { thumbnailViewModel: { image: { sources: thumbnails(videoId) } } } }),
      },
    },
  },
});

/** The older item of a list of Shorts. */
export const reelItem = (videoId: string) => ({
  richItemRenderer: {
    content: {
      reelItemRenderer: {
        videoId,
        headline: { simpleText: `Short ${videoId}` },
        viewCountText: { simpleText: '2.5M views' },
        thumbnail: { thumbnails: thumbnails(videoId) },
        videoType: 'REEL_VIDEO_TYPE_VIDEO',
      },
    },
  },
});

export const oldToken = (token: string) => ({
  continuationItemRenderer: { continuationEndpoint: { continuationCommand: { token, request: 'x' } } },
});

export const executorToken = (token: string) => {
  const commands = [{ playlistVotingRefreshPopupCommand: {} }, { continuationCommand: { token } }];
  return { continuationItemRenderer: { continuationEndpoint: { commandExecutorCommand: { commands } } } };
};

export const newToken = (token: string) => ({
  continuationItemViewModel: { continuationCommand: { innertubeCommand: { continuationCommand: { token } } } },
});

/** A page with one tab. */
const page = (tab: object) => ({
  twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { selected: true, ...tab } }] },
});

/** A first page whose first section has these contents; the second one carries the token for recommendations. */
export function playlistPage(sectionContents: readonly unknown[], fields: object = {}) {
  const contents = [{ itemSectionRenderer: { contents: sectionContents } }, oldToken('recommendations')];
  return {
    responseContext: { visitorData: 'v' },
    contents: page({ content: { sectionListRenderer: { contents } } }),
    ...fields,
  };
}

export const oldPage = (items: readonly unknown[], fields: object = {}) =>
  playlistPage([{ playlistVideoListRenderer: { contents: items, playlistId: 'UU', canReorder: false } }], fields);

/** A continuation page: `append` for the pages after the first, `reload` for a first page requested by its token. */
export const continuedPage = (items: readonly unknown[], how: 'append' | 'reload' = 'append') => ({
  contents: page({}),
  onResponseReceivedActions: [
    how === 'append'
      ? { appendContinuationItemsAction: { continuationItems: items, targetId: 'UU' } }
      : { reloadContinuationItemsCommand: { slot: 'RELOAD_CONTINUATION_SLOT_BODY', continuationItems: items } },
  ],
});

export const alertPage = (text: string, type = 'ERROR') => ({
  alerts: [{ alertRenderer: { type, text: { runs: [{ text }] } } }],
});

export function channelPage(fields: object = {}) {
  return {
    metadata: {
      channelMetadataRenderer: {
        title: 'A channel',
        externalId: CHANNEL_ID,
        vanityChannelUrl: 'http://www.youtube.com/@a.channel',
        ownerUrls: ['http://www.youtube.com/@a.channel'],
        description: 'x',
        ...fields,
      },
    },
    contents: page({ content: { richGridRenderer: {} } }),
  };
}

/** The page of a channel that another one replaced, according to the source of maintained clients. */
export function movedPage(channelId: string, list = 'onResponseReceivedActions') {
  const commandMetadata = { webCommandMetadata: { webPageType: 'WEB_PAGE_TYPE_CHANNEL' } };
  const endpoint = { commandMetadata, browseEndpoint: { browseId: channelId, params: 'x' } };
  return { responseContext: { visitorData: 'v' }, [list]: [{ navigateAction: { endpoint } }] };
}

/** The response of `resolve_url` for a URL that redirects. */
export const redirectedUrl = (url: unknown) => ({
  responseContext: { visitorData: 'v' },
  endpoint: { commandMetadata: {}, urlEndpoint: { url, target: 'TARGET_NEW_WINDOW' } },
});

/** The page of one of the platform's topic channels, such as Sports. */
const topicChannelDetailsRenderer = {
  title: { simpleText: 'Sailing' },
  subscribeButton: { subscribeButtonRenderer: { channelId: CHANNEL_ID } },
};
export const topicChannelPage = {
  header: {
    carouselHeaderRenderer: {
      contents: [{ carouselItemRenderer: { carouselItems: [] } }, { topicChannelDetailsRenderer }],
    },
  },
};

const channelAgeGateRenderer = { channelTitle: 'A whisky', mainText: { runs: [{ text: 'x' }] } };
export const ageGatedPage = {
  contents: page({ content: { sectionListRenderer: { contents: [{ channelAgeGateRenderer }] } } }),
};

export const VIDEO_ID = 'aaaaaaaaaaa';

interface TrackFields {
  generated?: boolean;
  name?: string;
  query?: string;
}

export const captionTrack = (languageCode: string, { generated = false, name, query = '' }: TrackFields = {}) => ({
  baseUrl: `https://www.youtube.com/api/timedtext?v=${VIDEO_ID}&ip=0.0.0.0&signature=x&key=yt8&lang=${languageCode}${query}`,
  name: { runs: [{ text: name ?? `Name of ${languageCode}` }] },
  vssId: `${generated ? 'a' : ''}.${languageCode}`,
  languageCode,
  ...(generated ? { kind: 'asr' } : {}),
  isTranslatable: true,
});

/** A player response of a video that plays; `captions` are those of its list of tracks. */
export function playerResponse({
  playability = {},
  video = {},
  captions,
}: { playability?: object; video?: object; captions?: object } = {}) {
  return {
    responseContext: {},
    playabilityStatus: { status: 'OK', playableInEmbed: true, ...playability },
    streamingData: { formats: [] },
    videoDetails: {
      videoId: VIDEO_ID,
      title: 'x',
      thumbnail: { thumbnails: [{ url: 'https://i.ytimg.com/vi/x/default.jpg', width: 120, height: 90 }] },
      lengthSeconds: '316',
      viewCount: '1856109',
      isPrivate: false,
      isLiveContent: false,
      ...video,
    },
    ...(captions && { captions: { playerCaptionsTracklistRenderer: { translationLanguages: [], ...captions } } }),
  };
}

export const microformatResponse = (fields: object = {}, video: object = {}) => ({
  videoDetails: { videoId: VIDEO_ID, ...video },
  microformat: {
    playerMicroformatRenderer: {
      publishDate: '2015-01-27T21:14:36-08:00',
      uploadDate: '2015-01-26T21:14:36-08:00',
      isShortsEligible: false,
      externalVideoId: VIDEO_ID,
      availableCountries: ['FR'],
      ...fields,
    },
  },
});

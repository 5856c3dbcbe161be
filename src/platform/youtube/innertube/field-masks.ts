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
  'alerts,onResponseReceivedActions,metadata/channelMetadataRenderer(title,externalId,vanityChannelUrl,ownerUrls),' +
  'header/carouselHeaderRenderer/contents/topicChannelDetailsRenderer' +
  '(title,subscribeButton/subscribeButtonRenderer/channelId),' +
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
 * A first page in both shapes. Rare parts are selected as a whole, because the mask is part of the URL: grids, which lists
 * of Shorts have, and continuation pages, which only a list with unreadable or repeated entries needs.
 */
export const UPLOADS_FIELDS =
  'alerts,onResponseReceivedActions,onResponseReceivedEndpoints,header/playlistHeaderRenderer/numVideosText,' +
  `${TABS}(richGridRenderer,sectionListRenderer/contents/itemSectionRenderer/contents(${ITEM},richGridRenderer,` +
  `playlistVideoListRenderer/contents(${ITEM})))`;

/** The same with the title of the playlist. */
export const PLAYLIST_FIELDS = `${UPLOADS_FIELDS},header/playlistHeaderRenderer/title,metadata/playlistMetadataRenderer/title`;

/**
 * The verdict about a response to a masked request. `proof`: it contains the important part. `ignored`: it is complete
 * despite the mask. `doubtful`: the mask may have removed what is missing. `rejected`: the request was rejected as invalid,
 * which may be due to the mask. `failed`: there is nothing to judge.
 */
export type MaskVerdict = 'proof' | 'fine' | 'ignored' | 'doubtful' | 'rejected' | 'failed';

/**
 * Decides which kinds of request use a mask. `$fields` was recorded for WEB and ANDROID only, so a doubtful response is
 * checked once without the mask. If the client returns more without the mask, or ignores it, later requests have none. When
 * a request is rejected without the mask too, rejections are not checked again until a masked request succeeds.
 */
export class FieldMaskSupport {
  private readonly unsupported = new Set<string>();
  private readonly proved = new Set<string>();
  /** The checks of rejected masks, in flight or with the result that the mask was not the cause. */
  private readonly rejections = new Map<string, Promise<void>>();

  /** @param onUnsupported called once for each key whose client does not support masks */
  constructor(private readonly onUnsupported: (key: string) => void = () => undefined) {}

  /**
   * @param key the client and the kind of request that the verdict applies to
   * @param query sends the request, with or without the mask
   */
  async query<R>(
    key: string,
    query: (masked: boolean) => Promise<R>,
    verdictOf: (response: R, masked: boolean) => MaskVerdict,
  ): Promise<R> {
    if (this.unsupported.has(key)) return query(false);
    const masked = await query(true);
    const verdict = verdictOf(masked, true);
    if (verdict === 'proof') this.proved.add(key);
    if (verdict === 'proof' || verdict === 'fine') this.rejections.delete(key);
    if (verdict === 'ignored') this.markUnsupported(key);
    if (verdict !== 'doubtful' && verdict !== 'rejected') return masked;
    const known = verdict === 'rejected' ? this.rejections.get(key) : undefined;
    if (known) {
      await known;
      return this.unsupported.has(key) ? query(false) : masked;
    }
    const complete = query(false);
    const supportsNone = verdict === 'rejected' ? ['proof', 'fine', 'doubtful'] : ['proof', 'fine'];
    const checked = complete.then((response) => {
      const completeVerdict = verdictOf(response, false);
      if (supportsNone.includes(completeVerdict)) this.markUnsupported(key);
      return completeVerdict === 'rejected';
    });
    if (verdict === 'rejected') this.rejections.set(key, this.settled(key, checked));
    await checked;
    return complete;
  }

  /** Resolves when a check has ended; forgets it unless the request was rejected without the mask too. */
  private async settled(key: string, checked: Promise<boolean>): Promise<void> {
    const rejectedToo = await checked.catch(() => false);
    if (!rejectedToo) this.rejections.delete(key);
  }

  /** Whether a masked response has contained the important part. */
  isProved(key: string): boolean {
    return this.proved.has(key);
  }

  private markUnsupported(key: string): void {
    if (this.unsupported.has(key)) return;
    this.unsupported.add(key);
    this.onUnsupported(key);
  }
}

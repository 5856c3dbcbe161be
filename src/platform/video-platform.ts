import type { ChannelReference } from '../domain/references/channel-reference.js';
import type { Channel, Playlist, Upload, VideoOutcome } from '../domain/transcript.js';

/** The call that reads the platform, with its deadline. */
export interface ReadingContext {
  /** Aborted when no caller waits for the result any more. */
  readonly signal: AbortSignal;
  /** The latest deadline of all waiting callers, in milliseconds of `performance.now()`. It can change, so read it each time. */
  readonly deadlineAtMs: number;
  /** Who calls: organizations take turns. Empty for work of the service itself. */
  readonly organizationId: string;
  /** Identity of the call: the calls of an organization take turns, so that a small one does not queue behind a large one. */
  readonly fairnessKey: object;
  /**
   * True for an archive job: calls are served first. Becomes false when a call waits for the same result, so read it each time.
   */
  readonly background?: boolean;
  /** True for a list whose videos are read next: it is refused when they would have to wait until the deadline. */
  readonly forVideos?: boolean;
  /** Called when a request for the result is sent to the platform. */
  readonly onRequest?: (() => void) | undefined;
}

/** Who asks for a turn: calls go before background work, and those of a kind alternate. */
export type Requester = Pick<ReadingContext, 'organizationId' | 'fairnessKey' | 'background'>;

/** One page of a list, in its order, each video once; it can be empty before the end. */
export interface UploadsListPage {
  uploads: Upload[];
  /** Continues after this page; null at the end. */
  next: string | null;
  /**
   * At the end: whether the list ended before the number of videos that it states, or with what cannot be read. The caller
   * reads it again later.
   */
  incomplete: boolean;
  /** At the end: how many videos the list states beyond those that it has. Null before, and when the end could not be read. */
  hidden: number | null;
  /** How many pages the list has up to the end of this one. */
  pages: number;
}

/** The first page of a channel's uploads, newest first, with what other lists state about them. */
export interface DescribedPage extends UploadsListPage {
  /** False when the kinds could not be read, so that the next read asks for them again. */
  settled: boolean;
}

/** One page of a playlist; a deleted or private video is listed with its `failure`. */
export interface PlaylistPage extends UploadsListPage {
  /** With the first page; null with later ones. */
  playlist: Playlist | null;
  /** With the first page: how many videos its header states, without those that it says are hidden. Null when it does not. */
  stated: number | null;
}

/**
 * A list cannot be continued from there any more: the platform refuses the continuation. The caller reads the list again
 * from its first page, and limits how often it does.
 */
export class ContinuationRejectedError extends Error {
  constructor() {
    super('The list cannot be continued: read it again from its first page.');
    this.name = 'ContinuationRejectedError';
  }
}

/**
 * The port to the platform that hosts the channels; it uses domain types only. The methods that list throw
 * `ChannelNotFoundError`, `PlaylistNotFoundError` or `UpstreamError`; when `context.signal` is aborted they reject with
 * its reason.
 */
export abstract class VideoPlatform {
  /** Whether background work may begin to read a list now: false while every egress is refused or its pace is used up. */
  abstract readonly servesLists: boolean;

  /** Resolves a reference to a channel ID. Sends no request for a reference that is an ID. */
  abstract resolveChannel(reference: ChannelReference, context: ReadingContext): Promise<string>;

  /** Reads the channel's name and handle; throws `ChannelNotFoundError` for one that is terminated or does not exist. */
  abstract readChannel(channelId: string, context: ReadingContext): Promise<Channel>;

  /**
   * Lists one page of all uploads of a channel, newest first, by one request and as the list alone states them: `publishedAt`
   * is null, and so is the `kind` of a video of up to three minutes, which can be a Short. None for a channel without uploads.
   * A page that cannot be read is an incomplete end without uploads.
   *
   * `readVideo` returns what the video itself states: title, duration, views, thumbnail, and with `PUBLISH_DATES=exact` the
   * date.
   *
   * Uploads that appear or are deleted between two pages shift the list: a video can be on two pages.
   *
   * @param after `next` of the page before, of any process and version; undefined for the first page
   * @throws ContinuationRejectedError when the list has to be read from its first page again
   */
  abstract uploads(channelId: string, after: string | undefined, context: ReadingContext): Promise<UploadsListPage>;

  /**
   * Adds to the first page of `uploads` what the list does not state: the exact dates of the newest 15 uploads, and the kinds
   * `short` and `video` as far as the newest Shorts reach. What cannot be read stays unknown. A list of Shorts only that ended
   * early goes on in the list of Shorts.
   *
   * @param page as it was read, or while it is read: the requests are sent at the same time
   * @throws what `page` rejects with
   */
  abstract describe(
    channelId: string,
    page: UploadsListPage | Promise<UploadsListPage>,
    context: ReadingContext,
  ): Promise<DescribedPage>;

  /**
   * Lists one page of a playlist, as `uploads` does. Throws `PlaylistNotFoundError` for one that is private or does not exist,
   * and without a request for an ID that is not of the kind `playlist` of `parsePlaylistReference`.
   */
  abstract playlist(playlistId: string, after: string | undefined, context: ReadingContext): Promise<PlaylistPage>;

  /**
   * Reads one video's transcript: in the video's original language when `languages` is empty, else in each listed element
   * that it has, in that order (as `languageChoice` returns them). Any error is a failure in the outcome; it rejects only
   * when `context.signal` is aborted, with its reason.
   *
   * @param publishedAt the exact date from the list of uploads, which is not requested again
   */
  abstract readVideo(
    videoId: string,
    languages: readonly string[],
    context: ReadingContext,
    publishedAt?: string | null,
  ): Promise<VideoOutcome>;
}

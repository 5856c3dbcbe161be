import type { ChannelReference } from '../domain/channel-reference.js';
import type { Channel, Playlist, Upload, VideoOutcome } from '../domain/transcript.js';

/** The call that reads the platform, with its deadline. */
export interface ReadingContext {
  /** Aborted when no caller waits for the result any more. */
  readonly signal: AbortSignal;
  /** The latest deadline of all waiting callers, in milliseconds of `performance.now()`. It can change, so read it each time. */
  readonly deadlineAtMs: number;
  /** Identity of the call. Requests of different keys alternate, so that a small call does not queue behind a large one. */
  readonly fairnessKey: object;
}

/** A channel's uploads, newest first; `complete` when the list has no more than these. */
export interface UploadsList {
  uploads: Upload[];
  complete: boolean;
}

/**
 * A playlist and its videos in the playlist's order, each once; `complete` when it has no more than these. A deleted or
 * private video is listed with its `failure`.
 */
export interface PlaylistVideos extends UploadsList {
  playlist: Playlist;
}

/**
 * The port to the platform that hosts the channels; it uses domain types only. The methods that list throw
 * `ChannelNotFoundError`, `PlaylistNotFoundError` or `UpstreamError`; when `context.signal` is aborted they reject with
 * its reason.
 */
export abstract class VideoPlatform {
  /** Resolves a reference to a channel ID. Sends no request for a reference that is an ID. */
  abstract resolveChannel(reference: ChannelReference, context: ReadingContext): Promise<string>;

  /** Reads the channel's name and handle; throws `ChannelNotFoundError` for one that is terminated or does not exist. */
  abstract readChannel(channelId: string, context: ReadingContext): Promise<Channel>;

  /** Lists at least `count` of the newest uploads, or all when there are fewer. */
  abstract listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList>;

  /**
   * Lists at least `count` of a playlist's videos, or all when there are fewer; none for an empty playlist. Throws
   * `PlaylistNotFoundError` for one that is private or does not exist, and without a request for an ID that is not of the
   * kind `playlist` of `parsePlaylistReference`.
   */
  abstract listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos>;

  /**
   * Reads one video's transcript: in the video's original language when `languages` is empty, else in each listed
   * language that it has, in that order. Any error is a failure in the outcome; it rejects only when `context.signal` is
   * aborted, with its reason.
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

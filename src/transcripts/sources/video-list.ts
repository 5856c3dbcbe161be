import { type Channel, type Playlist, unlistedVideo, type Upload } from '../../domain/transcript.js';
import type { ReadingContext } from '../../platform/video-platform.js';

/** Of a list that the platform refuses at the moment: when the list that is returned was read (ISO 8601). */
interface ListAge {
  listedAt?: string | undefined;
}

/** What a response names before its entries: the first event of the response. */
export type ListHeader =
  | ({ type: 'channel'; channel: Channel } & ListAge)
  | ({ type: 'playlist'; playlist: Playlist } & ListAge)
  /** The caller named the videos, so that there is nothing to name. */
  | { type: 'videos' };

/** The videos of a call, in the order of the response. A video that is listed twice gets two entries. */
export interface VideoList {
  header: ListHeader;
  /** What the ledger and the log name the call by: the ID of the channel, the playlist or the video, or `videos`. */
  resource: string;
  uploads: readonly Upload[];
  /** Whether the video of `since` is listed; undefined for a call without it. */
  sinceFound?: boolean | undefined;
}

/**
 * Lists the videos of one call. Everything after that is the same for all sources.
 *
 * @throws the errors that refuse the call, and the reason of `context.signal` when that is aborted first
 */
export type VideoSource = (context: ReadingContext) => Promise<VideoList>;

/**
 * The source of a call that names its videos. A video that was not listed has no list metadata: its entry has what the video
 * itself states.
 *
 * @param videoIds in the order of the entries; a video that occurs twice gets two entries
 * @param resource what the ledger and the log name the call by
 */
export function givenVideos(videoIds: readonly string[], resource = 'videos'): VideoSource {
  const uploads = videoIds.map(unlistedVideo);
  return () => Promise.resolve({ header: { type: 'videos' }, resource, uploads });
}

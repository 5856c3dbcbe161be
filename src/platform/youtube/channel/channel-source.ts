import type { ChannelReference } from '../../../domain/channel-reference.js';
import type { Channel } from '../../../domain/transcript.js';
import type { PlaylistVideos, ReadingContext, UploadsList, UploadsListPage } from '../../video-platform.js';

/** A reference that has to be resolved to an ID. */
export type NamedReference = Exclude<ChannelReference, { kind: 'id' }>;

/**
 * A source of channels, their uploads and playlists, with the contract of the methods of `VideoPlatform`: they throw
 * `ChannelNotFoundError`, `PlaylistNotFoundError` or `UpstreamError`, and reject with the reason of an aborted signal.
 */
export interface ChannelSource {
  resolve(reference: NamedReference, context: ReadingContext): Promise<string>;
  read(channelId: string, context: ReadingContext): Promise<Channel>;
  listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList>;
  /** @param token the source's own position in the list, which is `next` of its page before; undefined for the first page */
  listUploadsPage(channelId: string, token: string | undefined, context: ReadingContext): Promise<UploadsListPage>;
  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos>;
}

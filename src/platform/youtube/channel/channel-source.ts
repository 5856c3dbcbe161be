import type { ChannelReference } from '../../../domain/channel-reference.js';
import type { Channel } from '../../../domain/transcript.js';
import type { PlaylistVideos, ReadingContext, UploadsList } from '../../video-platform.js';

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
  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos>;
}

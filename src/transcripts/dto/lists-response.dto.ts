import { z } from 'zod';
import { Channel, Playlist, Upload } from '../../domain/transcript.js';
import type { ChannelWithUploads } from '../sources/channel-uploads.js';
import type { PlaylistWithVideos } from '../sources/playlist-source.js';
import { metadataOf } from '../delivery/transcript-events.js';
import { PLAYLIST_EXAMPLE, TRANSCRIPTS_EXAMPLE } from './api-transcripts.js';
import { type EntryDto, listedAt, sinceFound, VideoMetadata } from './transcripts-response.dto.js';

/** The name of the count of the operations, which have a rate limit of their own. */
export const UPLOADS_RATE_LIMIT = 'uploads';

const ListedUpload = z
  .object({
    videoId: Upload.shape.videoId,
    metadata: VideoMetadata.describe(
      'The metadata that the list states. `captionTracks` is always null, because the video itself is not read.',
    ),
  })
  .meta({ id: 'ListedUpload' });

export const ChannelUploadsDto = z
  .object({
    channel: Channel.describe('The channel.'),
    listedAt,
    uploads: z.array(ListedUpload).describe('The most recent uploads, newest first.'),
    sinceFound,
  })
  .meta({ id: 'ChannelUploads' });
export type ChannelUploadsDto = z.infer<typeof ChannelUploadsDto>;

export const PlaylistVideosDto = z
  .object({
    playlist: Playlist.describe('The playlist.'),
    listedAt,
    videos: z.array(ListedUpload).describe("The first videos, in the playlist's order."),
  })
  .meta({ id: 'PlaylistVideos' });
export type PlaylistVideosDto = z.infer<typeof PlaylistVideosDto>;

// The examples of the OpenAPI document.

const listed = ({ videoId, metadata }: EntryDto) => ({ videoId, metadata: { ...metadata, captionTracks: null } });

export const UPLOADS_EXAMPLE: ChannelUploadsDto = {
  channel: TRANSCRIPTS_EXAMPLE.channel,
  uploads: TRANSCRIPTS_EXAMPLE.results.map(listed),
};

export const PLAYLIST_VIDEOS_EXAMPLE: PlaylistVideosDto = {
  playlist: PLAYLIST_EXAMPLE.playlist,
  videos: TRANSCRIPTS_EXAMPLE.results.map((entry) => {
    const { videoId, metadata } = listed(entry);
    return { videoId, metadata: { ...metadata, publishedAt: null, channel: null } };
  }),
};

export function toUploadsDto({ channel, uploads, sinceFound, listedAt }: ChannelWithUploads): ChannelUploadsDto {
  return {
    channel,
    ...(listedAt !== undefined && { listedAt }),
    uploads: uploads.map((upload) => ({ videoId: upload.videoId, metadata: metadataOf(upload) })),
    ...(sinceFound !== undefined && { sinceFound }),
  };
}

export function toPlaylistVideosDto({ playlist, uploads, listedAt }: PlaylistWithVideos): PlaylistVideosDto {
  return {
    playlist,
    ...(listedAt !== undefined && { listedAt }),
    videos: uploads.map((upload) => ({
      videoId: upload.videoId,
      metadata: metadataOf(upload, undefined, { withChannel: true }),
    })),
  };
}

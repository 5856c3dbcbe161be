import { z } from 'zod';
import { Channel, Upload } from '../../domain/transcript.js';
import type { ChannelWithUploads } from '../../transcripts/sources/channel-uploads.js';
import { metadataOf } from '../../transcripts/delivery/transcript-events.js';
import { TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/api-transcripts.js';
import { listedAt, sinceFound, VideoMetadata } from '../../transcripts/dto/transcripts-response.dto.js';

/** The name of the count of the operation, which has a rate limit of its own. */
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

/** The example of the OpenAPI document. */
export const UPLOADS_EXAMPLE: ChannelUploadsDto = {
  channel: TRANSCRIPTS_EXAMPLE.channel,
  uploads: TRANSCRIPTS_EXAMPLE.results.map(({ videoId, metadata }) => ({
    videoId,
    metadata: { ...metadata, captionTracks: null },
  })),
};

export function toUploadsDto({ channel, uploads, sinceFound, listedAt }: ChannelWithUploads): ChannelUploadsDto {
  return {
    channel,
    ...(listedAt !== undefined && { listedAt }),
    uploads: uploads.map((upload) => ({ videoId: upload.videoId, metadata: metadataOf(upload) })),
    ...(sinceFound !== undefined && { sinceFound }),
  };
}

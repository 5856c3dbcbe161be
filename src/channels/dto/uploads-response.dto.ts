import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import type { ChannelWithUploads } from '../../transcripts/sources/channel-uploads.js';
import { metadataOf } from '../../transcripts/transcript-events.js';
import { TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/api-transcripts.js';
import { ChannelDto, LISTED_AT, SINCE_FOUND, VideoMetadata } from '../../transcripts/dto/transcripts-response.dto.js';

/** The name of the count of the operation, which has a rate limit of its own. */
export const UPLOADS_RATE_LIMIT = 'uploads';

const EXAMPLE = TRANSCRIPTS_EXAMPLE.results.map(({ videoId, metadata }) => ({
  videoId,
  metadata: { ...metadata, captionTracks: null },
}));

@ApiSchema({ name: 'ListedUpload' })
class ListedUploadDto {
  @ApiProperty({ description: 'The YouTube video ID.', example: 'hl-dinghy__' })
  videoId: string;

  @ApiProperty({
    description:
      'The metadata that the list states. `captionTracks` is always null, because the video itself is not read.',
  })
  metadata: VideoMetadata;
}

@ApiSchema({ name: 'ChannelUploads' })
export class ChannelUploadsDto {
  @ApiProperty({ description: 'The channel.' })
  channel: ChannelDto;

  @ApiPropertyOptional(LISTED_AT)
  listedAt?: string;

  @ApiProperty({ type: [ListedUploadDto], description: 'The most recent uploads, newest first.', example: EXAMPLE })
  uploads: ListedUploadDto[];

  @ApiPropertyOptional({ description: SINCE_FOUND })
  sinceFound?: boolean;
}

export function toUploadsDto({ channel, uploads, sinceFound, listedAt }: ChannelWithUploads): ChannelUploadsDto {
  return {
    channel,
    ...(listedAt !== undefined && { listedAt }),
    uploads: uploads.map((upload) => ({ videoId: upload.videoId, metadata: metadataOf(upload) })),
    ...(sinceFound !== undefined && { sinceFound }),
  };
}

import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ChannelDto, TRANSCRIPTS_EXAMPLE, VideoMetadataDto } from './transcripts-response.dto.js';

const EXAMPLE = TRANSCRIPTS_EXAMPLE.results.map(({ videoId, metadata }) => ({
  videoId,
  metadata: { ...metadata, captionTracks: null },
}));

@ApiSchema({ name: 'ListedUpload' })
export class ListedUploadDto {
  @ApiProperty({ description: 'The YouTube video ID.', example: 'hl-dinghy__' })
  videoId: string;

  @ApiProperty({
    description:
      'The metadata that the list states. `captionTracks` is always null, because the video itself is not read.',
  })
  metadata: VideoMetadataDto;
}

@ApiSchema({ name: 'ChannelUploads' })
export class ChannelUploadsDto {
  @ApiProperty({ description: 'The channel.' })
  channel: ChannelDto;

  @ApiProperty({ type: [ListedUploadDto], description: 'The most recent uploads, newest first.', example: EXAMPLE })
  uploads: ListedUploadDto[];
}

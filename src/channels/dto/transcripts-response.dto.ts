import { ApiExtraModels, ApiProperty, ApiPropertyOptional, ApiSchema, getSchemaPath } from '@nestjs/swagger';
import { VIDEO_FAILURE_CODES, VIDEO_FAILURES, VIDEO_KINDS } from '../../domain/transcript.js';

// The answer as the OpenAPI document describes it. The body itself is written by answer-stream.ts, which never builds
// these objects; a test holds every answer against the document.

@ApiSchema({ name: 'Channel' })
export class ChannelDto {
  @ApiProperty({ description: 'The channel ID of the platform.', example: 'UCh4rb0urL1ghtW0rksh0p00' })
  id: string;

  @ApiProperty({ description: 'The name that the channel shows.', example: 'Harbour Light Workshop' })
  name: string;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The handle with its @; null for the rare channel that has none.',
    example: '@harbourlight',
  })
  handle: string | null;
}

@ApiSchema({ name: 'CaptionTrack' })
export class CaptionTrackDto {
  @ApiProperty({ description: 'The BCP 47 code of the platform.', example: 'en' })
  languageCode: string;

  @ApiProperty({ description: 'The name of the track in English.', example: 'English' })
  name: string;

  @ApiProperty({ description: 'Made by speech recognition.', example: false })
  generated: boolean;
}

@ApiSchema({ name: 'VideoMetadata' })
@ApiExtraModels(CaptionTrackDto)
export class VideoMetadataDto {
  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Null when the platform shows none.',
    example: 'Planking a small boat',
  })
  title: string | null;

  @ApiProperty({ description: 'The page of the video.', example: 'https://www.youtube.com/watch?v=hb0000000A1' })
  url: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The exact time of publication in UTC, or null: it is never guessed from what the list shows.',
    example: '2026-05-21T11:22:05Z',
  })
  publishedAt: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The age as the platform shows it.',
    example: '4 months ago',
  })
  publishedText: string | null;

  @ApiProperty({ type: 'number', nullable: true, minimum: 0, description: 'Length in seconds.', example: 612 })
  durationSeconds: number | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 0,
    description: 'Views: exact when the video itself was read, else as the list rounds them.',
    example: 1234,
  })
  viewCount: number | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The address of a still picture.',
    example: 'https://i.ytimg.com/vi/hb0000000A1/hqdefault.jpg',
  })
  thumbnailUrl: string | null;

  @ApiProperty({
    type: String,
    enum: [...VIDEO_KINDS, null],
    nullable: true,
    description:
      '`live` is running now, `upcoming` is announced; a past live stream is a `video`. Null when the platform does not tell.',
    example: 'video',
  })
  kind: string | null;

  @ApiProperty({
    type: 'array',
    items: { $ref: getSchemaPath(CaptionTrackDto) },
    nullable: true,
    description: 'Every caption track that the video has; null when they could not be seen.',
  })
  captionTracks: CaptionTrackDto[] | null;
}

@ApiSchema({ name: 'Segment' })
export class SegmentDto {
  @ApiProperty({ description: 'Plain text, never empty.', example: 'Good morning from the harbour.' })
  text: string;

  @ApiProperty({ type: 'number', minimum: 0, description: 'Seconds from the beginning of the video.', example: 0.24 })
  start: number;

  @ApiProperty({ type: 'number', minimum: 0, description: 'Seconds on screen; lines can overlap.', example: 3.12 })
  duration: number;
}

@ApiSchema({ name: 'VideoError' })
export class EntryErrorDto {
  @ApiProperty({
    enum: VIDEO_FAILURE_CODES,
    description: `Why this video has no transcript here. ${VIDEO_FAILURE_CODES.map(
      (code) => `\`${code}\`: ${VIDEO_FAILURES[code].message}`,
    ).join(' ')}`,
    example: 'transcript_unavailable',
  })
  code: string;

  @ApiProperty({ description: 'A sentence for people.', example: 'This video has no captions.' })
  message: string;

  @ApiProperty({ description: 'Whether asking again later can help.', example: false })
  retryable: boolean;
}

@ApiSchema({ name: 'VideoTranscript' })
@ApiExtraModels(SegmentDto)
export class EntryDto {
  @ApiProperty({ description: 'The video ID of the platform.', example: 'hb0000000A1' })
  videoId: string;

  @ApiProperty({ description: 'Whether `transcript` holds one.', example: true })
  ok: boolean;

  @ApiProperty({ description: 'What is known of the video beside its transcript.' })
  metadata: VideoMetadataDto;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'array', items: { $ref: getSchemaPath(SegmentDto) } },
    description: 'Segments in order of `start` by language code; empty when `ok` is false.',
    example: { en: [{ text: 'Good morning from the harbour.', start: 0.24, duration: 3.12 }] },
  })
  transcript: Record<string, SegmentDto[]>;

  @ApiProperty({
    description: 'True when the transcript came without a fetch made for this call, and so cost nothing.',
    example: false,
  })
  cached: boolean;

  @ApiPropertyOptional({ description: 'Exists exactly when `ok` is false.' })
  error?: EntryErrorDto;
}

@ApiSchema({ name: 'Summary' })
export class SummaryDto {
  @ApiProperty({ type: 'integer', minimum: 0, description: 'Entries in `results`.', example: 2 })
  total: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: '`cached` + `fetched`.', example: 1 })
  succeeded: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: '`total` - `succeeded`.', example: 1 })
  failed: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'Transcripts that cost nothing.', example: 0 })
  cached: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts fetched for this call: what it cost of the quota.',
    example: 1,
  })
  fetched: number;
}

@ApiSchema({ name: 'ChannelTranscripts' })
export class TranscriptsDto {
  @ApiProperty({ description: 'The channel that the reference led to.' })
  channel: ChannelDto;

  @ApiProperty({ type: [EntryDto], description: 'The newest uploads, newest first, each with a status of its own.' })
  results: EntryDto[];

  @ApiProperty({ description: 'Counts over `results`.' })
  summary: SummaryDto;
}

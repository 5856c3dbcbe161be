import { ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ArrayMaxSize, ArrayMinSize, IsArray, IsIn, IsString, Matches, Max, Min } from 'class-validator';
import type { Request } from 'express';
import { Kinds, SINCE_INVALID, TextBodyDto } from '../../transcripts/dto/transcripts-query.dto.js';
import type { VideoKind } from '../../domain/transcript.js';
import { CHANNEL_FORMS } from '../../domain/channel-reference.js';
import { REFERENCE_LENGTH_MAX } from '../../domain/page-url.js';
import { requestContext } from '../../http/server/request-context.js';
import {
  AFTER_INVALID,
  digitsOf,
  HasNoApiKey,
  LIMIT_INVALID,
  Optional,
  OptionalInteger,
  PAGE_SIZE_DEFAULT,
  PAGE_SIZE_MAX,
} from '../../http/routes/validation.js';
import { ON_QUOTA, type OnQuota } from '../job.js';
import { JOB_VARIANTS, type JobVariant } from '../job-variants.js';
import { VIDEO_ID } from '../../domain/video-reference.js';

/** The number of uploads of a job is stored as an `integer` of PostgreSQL. */
export const UPLOADS_MAX = 2_147_483_647;

const JOB_VIDEOS_MAX = 10_000;
const VIDEOS_INVALID = `videos must be a list of 1 to ${JOB_VIDEOS_MAX} IDs or URLs of videos.`;
/** Of a new job: so many URLs of videos with about 100 characters. */
export const JOB_BYTES_MAX = 1024 * 1024;

/** The body of a new job. */
@ApiSchema({ name: 'NewJobBody' })
export class CreateJobDto extends TextBodyDto {
  @ApiPropertyOptional({
    description:
      'The channel, in any form that `GET /channels/{id}/transcripts` accepts. A job has exactly one of `channel`, `playlist` and `videos`.',
    maxLength: REFERENCE_LENGTH_MAX,
  })
  @Optional()
  @IsString({ message: `channel must be ${CHANNEL_FORMS}.` })
  @HasNoApiKey()
  channel?: string;

  @ApiPropertyOptional({
    description: 'The ID or a URL of a playlist, as in `GET /playlists/{id}/transcripts`.',
    maxLength: REFERENCE_LENGTH_MAX,
  })
  @Optional()
  @IsString({ message: 'playlist must be the ID or the URL of a playlist.' })
  @HasNoApiKey()
  playlist?: string;

  @ApiPropertyOptional({
    type: [String],
    minItems: 1,
    maxItems: JOB_VIDEOS_MAX,
    description: 'IDs or URLs of videos, read in this order. A video that is listed twice is read once.',
  })
  @Optional()
  @IsArray({ message: VIDEOS_INVALID })
  @ArrayMinSize(1, { message: VIDEOS_INVALID })
  @ArrayMaxSize(JOB_VIDEOS_MAX, { message: VIDEOS_INVALID })
  @IsString({ each: true, message: VIDEOS_INVALID })
  videos?: string[];

  @Kinds({
    inBody: true,
    description:
      'The kinds of videos of a channel or a playlist; by default all. `limit` counts what remains of the whole list. For `video` and `short`, one whose kind YouTube does not state is kept.',
  })
  kinds?: VideoKind[];

  @OptionalInteger([1, UPLOADS_MAX], {
    description:
      'The maximum number of videos, from the start of the list: the newest uploads of a channel. By default all.',
  })
  limit?: number;

  @ApiPropertyOptional({
    description:
      'The ID of a video: only the uploads of the channel that are newer than it. When the channel does not list it, every upload is taken. ' +
      'An upload that was live, announced or without captions at an earlier job does not come back by it.',
    pattern: VIDEO_ID.source,
  })
  @Optional()
  @Matches(VIDEO_ID, { message: SINCE_INVALID })
  since?: string;

  @ApiPropertyOptional({
    enum: ON_QUOTA,
    description:
      'What to do when the monthly quota is used up: `pause` until the month turns or the limit grows, or `fail`. A job that ' +
      'has failed can be resumed, and its results stay available.',
    default: 'pause',
  })
  @Optional()
  @IsIn(ON_QUOTA, { message: `onQuota must be ${ON_QUOTA.join(' or ')}.` })
  onQuota: OnQuota = 'pause';
}

export const NEW_JOB_BODIES = {
  channel: { summary: 'A channel', value: { channel: '@harbourlight' } },
  playlist: { summary: 'A playlist', value: { playlist: 'PLharbourlight-boats' } },
  videos: { summary: 'A list of videos', value: { videos: ['hl-dinghy__', 'https://youtu.be/hl-silent__'] } },
} satisfies Record<string, { summary: string; value: Partial<CreateJobDto> }>;

/**
 * The organization of the caller; adds the job or subscription to the log line of the request, unless the path has another text
 * than an ID.
 */
export function organizationOf(request: Request, variant: JobVariant, id: string): string {
  const { caller, log } = requestContext(request);
  if (JOB_VARIANTS[variant].idForm.test(id)) log[`${variant}Id`] = id;
  return caller.organization.id;
}

/** The query parameters of the results of a job. */
export class ResultsQueryDto {
  @ApiPropertyOptional({
    type: 'integer',
    minimum: 1,
    description:
      `The maximum number of entries to return. JSON: ${PAGE_SIZE_DEFAULT} by default, and values above ${PAGE_SIZE_MAX} are ` +
      `treated as ${PAGE_SIZE_MAX}. NDJSON: all by default.`,
  })
  @Optional()
  @Transform(({ value }: { value: unknown }) => digitsOf(value))
  @Min(1, { message: LIMIT_INVALID })
  limit?: number;

  @ApiPropertyOptional({
    type: 'integer',
    minimum: 0,
    description:
      'The `next` of the previous page, or the `cursor` of a line of NDJSON. By default the entries begin with the first one.',
  })
  @Optional()
  @Transform(({ value }: { value: unknown }) => digitsOf(value))
  @Min(0, { message: AFTER_INVALID })
  @Max(UPLOADS_MAX, { message: AFTER_INVALID })
  after?: number;
}

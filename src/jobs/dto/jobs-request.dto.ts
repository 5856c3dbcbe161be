import { ApiSchema } from '@nestjs/swagger';
import { CHANNEL_FORMS, CHANNEL_NAMED } from '../../domain/references/channel-reference.js';
import { REFERENCE_LENGTH_MAX } from '../../domain/references/page-url.js';
import type { VideoKind } from '../../domain/transcript.js';
import { Field, field, OptionalFields, Picked, Restated } from '../../http/routes/field.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PageQueryDto } from '../../http/routes/validation.js';
import { As, Kinds, PublishedAfter, Since, TextFields } from '../../transcripts/dto/transcripts-query.dto.js';
import { ON_QUOTA, type OnQuota } from '../job.js';
import { CURSOR_KIND } from '../results/cursor.js';
import { Keep } from './keep.js';
import { Label, Labels } from './labels.js';

/** The number of uploads of a job is stored as an `integer` of PostgreSQL. */
export const UPLOADS_MAX = 2_147_483_647;

const JOB_VIDEOS_MAX = 10_000;
/** Of a new job: so many URLs of videos with about 100 characters. */
export const JOB_BYTES_MAX = 1024 * 1024;

/** What a job is about, but for the list of its videos, which is stored apart. */
export class JobFields extends TextFields {
  @Field.text({
    rule: CHANNEL_FORMS,
    isStored: true,
    docs: { maxLength: REFERENCE_LENGTH_MAX },
    description:
      'The channel, in any form that `GET /channels/{id}/transcripts` accepts. A job has exactly one of `channel`, `playlist` and `videos`.',
    brief: 'The channel as the request named it.',
    hint: `The channel: ${CHANNEL_NAMED}. Either this or playlist.`,
  })
  channel?: string;

  @Field.text({
    rule: 'the ID or the URL of a playlist',
    isStored: true,
    docs: { maxLength: REFERENCE_LENGTH_MAX },
    description: 'The ID or a URL of a playlist, as in `GET /playlists/{id}/transcripts`.',
    brief: 'The playlist as the request named it.',
    hint: 'The ID or the URL of a playlist.',
  })
  playlist?: string;

  @Kinds(
    'The kinds of videos of a channel or a playlist; by default all. `limit` counts what remains of the whole list. For `video` and `short`, one whose kind YouTube does not state is kept.',
  )
  kinds?: readonly VideoKind[];

  @PublishedAfter(
    'Only videos of a channel or a playlist that were published at this time or later, of the whole list: a date, which begins at 0:00 UTC, ' +
      'or a time with its zone. The exact date of a video decides or, where YouTube does not state it, the age that the list shows; a video without either is kept.',
  )
  publishedAfter?: string;

  @Field.integer({
    min: 1,
    max: UPLOADS_MAX,
    description:
      'The maximum number of videos, from the start of the list: the newest uploads of a channel. By default all.',
    brief: 'The maximum number of videos. Null: all.',
    hint: 'Videos at most, from the start of the list: the newest uploads of a channel. By default all.',
  })
  limit?: number;

  @Since(
    'The ID of a video: only the uploads of the channel that are newer than it. When the channel does not list it, every upload is taken. ' +
      'An upload that was live, announced or without captions at an earlier job does not come back by it.',
  )
  since?: string;

  @Field.word({
    words: ON_QUOTA,
    default: 'pause',
    description:
      'What to do when the monthly quota is used up: `pause` until the month turns or the limit grows, or `fail`. A job that ' +
      'has failed can be resumed, and its results stay available.',
    brief: 'What the job does when the monthly quota is used up.',
    hint: 'When the quota is used up: pause until there is more, or fail.',
  })
  onQuota: OnQuota;

  @Labels()
  labels?: Labels;

  @Keep()
  keep: boolean;
}

/** The body of a new job. */
@ApiSchema({ name: 'NewJobBody' })
export class CreateJobDto extends JobFields {
  @Field.texts({
    max: JOB_VIDEOS_MAX,
    rule: `a list of 1 to ${JOB_VIDEOS_MAX} IDs or URLs of videos`,
    description: 'IDs or URLs of videos, read in this order. A video that is listed twice is read once.',
  })
  videos?: readonly string[];
}

/** The body of a change of a job. */
@ApiSchema({ name: 'JobChangeBody' })
export class ChangeJobDto extends Restated(OptionalFields(Picked(JobFields, 'keep')), {
  keep: {
    required: true,
    example: true,
    description:
      'Whether the transcripts are kept in the library of the organization. `true` also keeps those that are stored; `false` keeps none that ' +
      'comes later, and leaves what is kept.',
  },
}) {
  declare keep: boolean;
}

export const NEW_JOB_BODIES = {
  channel: { summary: 'A channel', value: { channel: '@harbourlight' } },
  playlist: { summary: 'A playlist', value: { playlist: 'PLharbourlight-boats' } },
  videos: { summary: 'A list of videos', value: { videos: ['hl-dinghy__', 'https://youtu.be/hl-silent__'] } },
} satisfies Record<string, { summary: string; value: Partial<CreateJobDto> }>;

/** The query of a list of jobs. */
export class JobsQueryDto extends PageQueryDto {
  @Label()
  label?: string;
}

/** The query parameters of results. */
export class ResultsQueryDto extends Restated(Picked(TextFields, 'chunkSeconds'), {
  chunkSeconds: {
    description:
      'Only with `as=documents`: joins what is stored to pieces of about this many seconds, by default 60. Longer pieces stay as they are stored.',
  },
}) {
  @Field.integer({
    min: 1,
    description:
      `The maximum number of entries to return. JSON: ${PAGE_SIZE_DEFAULT} by default, and values above ${PAGE_SIZE_MAX} are ` +
      `treated as ${PAGE_SIZE_MAX}. NDJSON: all by default.`,
  })
  limit?: number;

  @field(CURSOR_KIND, {
    description:
      'The `next` of the previous page, or the `cursor` of a line of NDJSON. By default the entries begin with the oldest one that is stored.',
    hint: 'The `next` of the last result; by default the oldest stored one comes first.',
  })
  after?: string;

  @As()
  as?: 'documents';
}

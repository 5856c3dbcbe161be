import { ApiSchema } from '@nestjs/swagger';
import { CHANNEL_FORMS, CHANNEL_NAMED } from '../../domain/references/channel-reference.js';
import { REFERENCE_LENGTH_MAX } from '../../domain/references/page-url.js';
import type { VideoKind } from '../../domain/transcript.js';
import { VIDEO_ID } from '../../domain/references/video-reference.js';
import { Field, field, Fields, OptionalFields, Picked } from '../../http/routes/field.js';
import { PageQueryDto } from '../../http/routes/validation.js';
import { Kinds, TextFields } from '../../transcripts/dto/transcripts-query.dto.js';
import { ResultsQueryDto, Keep } from './jobs-request.dto.js';
import { Label, Labels } from './labels.js';
import { SUBSCRIPTION_STATES, type Start, type SubscriptionState } from '../job.js';

/** The most of the newest uploads that a subscription can begin with. */
const START_UPLOADS_MAX = 100;

@ApiSchema({ name: 'NewSubscriptionBody' })
export class CreateSubscriptionDto extends TextFields {
  @Field.text({
    rule: CHANNEL_FORMS,
    isStored: true,
    docs: { maxLength: REFERENCE_LENGTH_MAX },
    description:
      'The channel, in any form that `GET /channels/{id}/transcripts` accepts. A subscription has exactly one of `channel` and `playlist`.',
    brief: 'The channel as the request named it.',
    hint: `The channel: ${CHANNEL_NAMED}.`,
    example: '@harbourlight',
  })
  channel?: string;

  @Field.text({
    rule: 'the ID or the URL of a playlist',
    isStored: true,
    storedSince: 2,
    docs: { maxLength: REFERENCE_LENGTH_MAX },
    description:
      'The ID or a URL of a playlist, as in `GET /playlists/{id}/transcripts`. A video that is added anywhere in its first 5,000 is new.',
    brief: 'The playlist as the request named it.',
    hint: 'Or a playlist: its ID or URL.',
  })
  playlist?: string;

  @Kinds(
    'The kinds of uploads to deliver; by default all. For `video` and `short`, one whose kind YouTube does not state is kept.',
  )
  kinds?: readonly VideoKind[];

  @Field.integer({
    min: 15,
    max: 1_440,
    default: 60,
    description: 'The minutes between two checks. A check costs no quota.',
    brief: 'The minutes between two checks.',
  })
  checkMinutes: number;

  @field(
    {
      schema: {
        oneOf: [
          { type: 'integer', minimum: 1, maximum: START_UPLOADS_MAX },
          { type: 'string', pattern: '^(now|[A-Za-z0-9_-]{11})$' },
        ],
      },
      // An ID has 11 characters, which can be digits.
      parse: (text) => (/^[0-9]{1,3}$/.test(text) ? Number(text) : text),
      fault: (value) => {
        const isCount = Number.isInteger(value) && Number(value) >= 1 && Number(value) <= START_UPLOADS_MAX;
        if (isCount || value === 'now' || (typeof value === 'string' && VIDEO_ID.test(value))) return undefined;
        return `must be "now", an integer from 1 to ${START_UPLOADS_MAX} (the newest uploads) or the ID of a video (11 characters; the uploads above it)`;
      },
    },
    {
      default: 'now',
      description:
        'What is delivered first: `"now"` delivers what is uploaded from now on, a number (1 to 100) the newest uploads too, ' +
        'or the first videos of the playlist, and the ID of a video all above it, up to 500.',
      hint: '`now`: only later uploads. A number: so many of the newest first. The ID of a video: first all above it.',
    },
  )
  start: Start;

  @Labels()
  labels?: Labels;

  @Keep()
  keep: boolean;
}

/** What a change sets of the request that created a subscription. */
export class ChangedFields extends OptionalFields(
  Picked(CreateSubscriptionDto, 'languages', 'match', 'tracks', 'kinds', 'include', 'chunkSeconds', 'labels', 'keep'),
  { nullable: true },
) {}

@ApiSchema({ name: 'SubscriptionChangeBody' })
export class ChangeSubscriptionDto extends Fields(
  OptionalFields(Picked(CreateSubscriptionDto, 'checkMinutes')),
  ChangedFields,
) {
  @Field.word({
    words: SUBSCRIPTION_STATES,
    description:
      '`paused` ends the checks and the fetching until it is `active` again, which lets a subscription go on from any pause, ' +
      'with a check.',
  })
  state?: SubscriptionState;
}

const FollowedChannel = (): PropertyDecorator =>
  Field.text({
    rule: CHANNEL_FORMS,
    min: 1,
    max: REFERENCE_LENGTH_MAX,
    description:
      'Only what follows this channel: its ID, its handle, or the text that the subscription was created with.',
    hint: 'Only of this channel.',
  });

export class SubscriptionsQueryDto extends PageQueryDto {
  @Label()
  label?: string;

  @FollowedChannel()
  channel?: string;
}

export class FeedQueryDto extends ResultsQueryDto {
  @Label()
  label?: string;

  @FollowedChannel()
  channel?: string;
}

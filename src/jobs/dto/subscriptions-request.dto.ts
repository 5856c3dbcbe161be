import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { IsIn, IsString, ValidateBy } from 'class-validator';
import { CHANNEL_FORMS } from '../../domain/channel-reference.js';
import { REFERENCE_LENGTH_MAX } from '../../domain/page-url.js';
import type { VideoKind } from '../../domain/transcript.js';
import { HasNoApiKey, Optional, OptionalInteger } from '../../http/routes/validation.js';
import { Kinds, TextBodyDto } from '../../transcripts/dto/transcripts-query.dto.js';
import {
  CHECK_MINUTES_DEFAULT,
  CHECK_MINUTES_MAX,
  CHECK_MINUTES_MIN,
  isStart,
  START_UPLOADS_MAX,
  SUBSCRIPTION_STATES,
  type Start,
  type SubscriptionState,
} from '../subscription.js';
import { NEW_SUBSCRIPTION_EXAMPLE, START_FIELD } from './subscription.dto.js';

const START_INVALID = `start must be "now", an integer from 1 to ${START_UPLOADS_MAX} (the newest uploads) or the ID of a video (11 characters; the uploads above it).`;

const CheckMinutes = (docs?: { default: number }): PropertyDecorator =>
  OptionalInteger([CHECK_MINUTES_MIN, CHECK_MINUTES_MAX], {
    description: 'The minutes between two checks of the channel. A check costs no quota.',
    ...docs,
  });

/** The body of a new subscription. */
@ApiSchema({ name: 'NewSubscriptionBody' })
export class CreateSubscriptionDto extends TextBodyDto {
  @ApiProperty({
    description: 'The channel, in any form that `GET /channels/{id}/transcripts` accepts.',
    maxLength: REFERENCE_LENGTH_MAX,
    example: NEW_SUBSCRIPTION_EXAMPLE.request.channel,
  })
  @IsString({ message: `channel must be ${CHANNEL_FORMS}.` })
  @HasNoApiKey()
  channel: string;

  @Kinds({
    description:
      'The kinds of uploads to deliver; by default all. For `video` and `short`, one whose kind YouTube does not state is kept.',
    inBody: true,
  })
  kinds?: VideoKind[];

  @CheckMinutes({ default: CHECK_MINUTES_DEFAULT })
  checkMinutes?: number;

  @ApiPropertyOptional({ ...START_FIELD, default: 'now' })
  @Optional()
  @ValidateBy({ name: 'isStart', validator: { validate: isStart, defaultMessage: () => START_INVALID } })
  start?: Start;
}

/** The body of a change of a subscription. */
@ApiSchema({ name: 'SubscriptionChangeBody' })
export class ChangeSubscriptionDto {
  @CheckMinutes()
  checkMinutes?: number;

  @ApiPropertyOptional({
    enum: SUBSCRIPTION_STATES,
    description:
      '`paused` ends the checks and the fetching until it is `active` again, which lets a subscription go on from any pause and ' +
      'checks the channel.',
  })
  @Optional()
  @IsIn(SUBSCRIPTION_STATES, { message: `state must be ${SUBSCRIPTION_STATES.join(' or ')}.` })
  state?: SubscriptionState;
}

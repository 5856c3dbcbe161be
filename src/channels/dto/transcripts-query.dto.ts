import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { Validate, ValidateIf, ValidatorConstraint, type ValidatorConstraintInterface } from 'class-validator';
import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { readLanguages } from './languages.js';

export const LIMIT_DEFAULT = 25;

@ValidatorConstraint()
class Limit implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    return typeof value === 'number' && value >= 1;
  }

  defaultMessage(): string {
    return `limit must be given once, as a whole number of at least 1 in decimal digits (more than ${VIDEOS_PER_CALL_MAX} counts as ${VIDEOS_PER_CALL_MAX}).`;
  }
}

@ValidatorConstraint()
class Languages implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    return Array.isArray(value);
  }

  defaultMessage(): string {
    return 'languages must be given once, as language codes separated by commas, such as en,de (20 at the most).';
  }
}

/** NaN, which the validator refuses, for what is not a number of the grammar. */
function readLimit(value: unknown): number {
  const limit = typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  return Math.min(limit, VIDEOS_PER_CALL_MAX);
}

/** The query of the operation; what is not named here is refused. */
export class TranscriptsQueryDto {
  @ApiPropertyOptional({
    description: `How many of the channel's newest uploads to return. More than ${VIDEOS_PER_CALL_MAX} counts as ${VIDEOS_PER_CALL_MAX}.`,
    type: 'integer',
    minimum: 1,
    default: LIMIT_DEFAULT,
    example: 5,
  })
  @Transform(({ value }: { value: unknown }) => readLimit(value))
  @Validate(Limit)
  limit: number = LIMIT_DEFAULT;

  @ApiPropertyOptional({
    description:
      'Language codes in order of preference, separated by commas, such as `en,de`, 20 at the most. Each one that the video has is returned; `en` finds ' +
      '`en-GB` when there is no `en`. Without it the transcript is in the video’s original language. Never a machine translation.',
    type: 'string',
  })
  @ValidateIf((_query, value) => value !== undefined)
  @Transform(({ value }: { value: unknown }) => readLanguages(value))
  @Validate(Languages)
  languages?: string[];
}

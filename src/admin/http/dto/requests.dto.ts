import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { IsIn, IsString, Min, ValidateBy, ValidateIf } from 'class-validator';
import { PLANS } from '../../../domain/plan.js';
import { DAYS_MAX, GRACE_HOURS_DEFAULT, GRACE_HOURS_MAX } from '../../../organizations/key-lifetime.js';
import { MONTHLY_LIMIT_MAX, NAME_LENGTH_MAX } from '../../../organizations/organization-errors.js';

const COUNT_DEFAULT = 50;
const COUNT_MAX = 100;
const PLAN_MESSAGE = `plan must be ${PLANS.join(' or ')}.`;
const NAME_MESSAGE = 'name must be a text.';

/** Unlike IsOptional, takes null for a value. */
function Optional(): PropertyDecorator {
  return ValidateIf((_body, value) => value !== undefined);
}

/** One rule, so that a wrong value is told once. */
function WholeNumber(min: number, max: number, orNull = false): PropertyDecorator {
  return ValidateBy({
    name: 'wholeNumber',
    validator: {
      validate: (value: unknown) =>
        (orNull && value === null) ||
        (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max),
      defaultMessage: (argument) =>
        `${argument?.property} must be ${orNull ? 'null or ' : ''}a whole number from ${min} to ${max}.`,
    },
  });
}

function MonthlyLimit(): PropertyDecorator {
  return applyDecorators(
    ApiPropertyOptional({
      type: 'integer',
      nullable: true,
      minimum: 0,
      maximum: MONTHLY_LIMIT_MAX,
      description: "Transcripts a month, in place of the plan's; null follows the plan.",
      example: 20000,
    }),
    Optional(),
    WholeNumber(0, MONTHLY_LIMIT_MAX, true),
  );
}

/** The body that makes an organization. */
export class NewOrganizationBody {
  @ApiProperty({ description: 'What it is called.', minLength: 1, maxLength: NAME_LENGTH_MAX, example: 'Acme' })
  @IsString({ message: NAME_MESSAGE })
  name: string;

  @ApiProperty({ enum: PLANS, description: 'Its plan.', example: 'pro' })
  @IsIn(PLANS, { message: PLAN_MESSAGE })
  plan: string;

  @MonthlyLimit()
  monthlyLimit?: number | null;
}

/** The body that changes an organization; what is left out stays as it is. */
export class OrganizationChangeBody {
  @ApiPropertyOptional({ enum: PLANS, description: 'The plan it is put on.', example: 'pro' })
  @Optional()
  @IsIn(PLANS, { message: PLAN_MESSAGE })
  plan?: string;

  @MonthlyLimit()
  monthlyLimit?: number | null;
}

/** The body that issues a key. */
export class NewKeyBody {
  @ApiPropertyOptional({
    description: 'What the key is for.',
    minLength: 1,
    maxLength: NAME_LENGTH_MAX,
    default: 'default',
    example: 'server',
  })
  @Optional()
  @IsString({ message: NAME_MESSAGE })
  name?: string;

  @ApiPropertyOptional({
    type: 'integer',
    minimum: 1,
    maximum: DAYS_MAX,
    description: 'When it ends; never by default.',
    example: 90,
  })
  @Optional()
  @WholeNumber(1, DAYS_MAX)
  expiresInDays?: number;
}

/** The body that rotates a key. */
export class RotationBody {
  @ApiPropertyOptional({
    type: 'integer',
    minimum: 0,
    maximum: GRACE_HOURS_MAX,
    description: 'How long the old key lives on; 0 ends it at once.',
    example: 24,
  })
  @Optional()
  @WholeNumber(0, GRACE_HOURS_MAX)
  graceHours: number = GRACE_HOURS_DEFAULT;
}

/** Which page of a list. */
export class PageQuery {
  @ApiPropertyOptional({
    type: 'integer',
    minimum: 1,
    description: `How many to return. More than ${COUNT_MAX} counts as ${COUNT_MAX}.`,
    example: 20,
  })
  @Transform(({ value }: { value: unknown }) => readCount(value))
  @Min(1, { message: 'limit must be given once, as a whole number of at least 1 in decimal digits.' })
  limit: number = COUNT_DEFAULT;

  @ApiPropertyOptional({ type: 'string', description: 'The `next` of the page before; none for the first page.' })
  @Optional()
  @IsString({ message: 'after must be given once, as the "next" of a page.' })
  after?: string;
}

/** Whether the usage is to be recomputed. */
export class VerifyQuery {
  @ApiPropertyOptional({
    enum: ['true', 'false'],
    default: 'false',
    description: 'Recompute every month from its settled calls.',
    example: 'true',
  })
  @Optional()
  @IsIn(['true', 'false'], { message: 'verify must be given once, as true or false.' })
  verify?: string;
}

function readCount(value: unknown): number {
  return Math.min(typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN, COUNT_MAX);
}

import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { ArrayMinSize, IsArray, IsBoolean, IsIn, IsString, Matches, ValidateIf } from 'class-validator';
import { SCOPES, type Scope } from '../../../domain/caller.js';
import { PLANS, type Plan } from '../../../domain/plan.js';
import { Optional, OptionalInteger, PageAfter, PageLimit } from '../../../http/routes/validation.js';
import {
  EXTERNAL_ID_LENGTH_MAX,
  GRACE_HOURS_DEFAULT,
  GRACE_HOURS_MAX,
  KEY_LIFETIME_DAYS_MAX,
  MONTHLY_LIMIT_MAX,
  NAME_LENGTH_MAX,
} from '../../../organizations/limits.js';
import { DATE_FORMAT, REPORT_DAYS_MAX, REPORT_GROUPS, type ReportGroup } from '../../../quota/usage-report.js';
import { ORGANIZATION } from './responses.dto.js';

const ADMIN_PAGE_SIZE_DEFAULT = 50;
const PLAN_MESSAGE = `plan must be ${PLANS.join(' or ')}.`;
const NAME_MESSAGE = 'name must be a string.';
const SCOPES_MESSAGE = `scopes must be a list of one or more of ${SCOPES.join(', ')}.`;

function ReportDate(description: string): PropertyDecorator {
  return applyDecorators(
    ApiPropertyOptional({ type: String, format: 'date', description }),
    Optional(),
    Matches(DATE_FORMAT, { message: '$property must be a day such as 2026-10-01, given once.' }),
  );
}

const MonthlyLimit = (): PropertyDecorator =>
  OptionalInteger([0, MONTHLY_LIMIT_MAX], {
    nullable: true,
    description: 'Transcripts per month, instead of the limit of the plan. Null applies the limit of the plan.',
  });

const ExternalId = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      type: String,
      nullable: true,
      minLength: 1,
      maxLength: EXTERNAL_ID_LENGTH_MAX,
      description:
        'The value of the claim `OIDC_ORGANIZATION_CLAIM` in the tokens of the organization. Null links it to none.',
    }),
    ValidateIf((_body, value) => value !== undefined && value !== null),
    IsString({ message: 'externalId must be null or a string.' }),
  );

@ApiSchema({ name: 'NewOrganizationBody' })
export class CreateOrganizationDto {
  @ApiProperty({
    description: 'The name. Names need not be unique.',
    minLength: 1,
    maxLength: NAME_LENGTH_MAX,
    example: ORGANIZATION.name,
  })
  @IsString({ message: NAME_MESSAGE })
  name: string;

  @ApiProperty({ enum: PLANS, description: 'The plan.', example: ORGANIZATION.plan })
  @IsIn(PLANS, { message: PLAN_MESSAGE })
  plan: Plan;

  @MonthlyLimit()
  monthlyLimit?: number | null;

  @ExternalId()
  externalId?: string | null;
}

@ApiSchema({ name: 'OrganizationChangeBody' })
export class UpdateOrganizationDto {
  @ApiPropertyOptional({ enum: PLANS, description: 'The new plan.' })
  @Optional()
  @IsIn(PLANS, { message: PLAN_MESSAGE })
  plan?: Plan;

  @MonthlyLimit()
  monthlyLimit?: number | null;

  @ExternalId()
  externalId?: string | null;
}

@ApiSchema({ name: 'NewKeyBody' })
export class IssueKeyDto {
  @ApiPropertyOptional({
    description: 'A label for the purpose of the key.',
    minLength: 1,
    maxLength: NAME_LENGTH_MAX,
    default: 'default',
  })
  @Optional()
  @IsString({ message: NAME_MESSAGE })
  name?: string;

  @OptionalInteger([1, KEY_LIFETIME_DAYS_MAX], {
    description: 'The number of days after which the key expires. By default it does not expire.',
  })
  expiresInDays?: number;

  @OptionalInteger([0, MONTHLY_LIMIT_MAX], {
    nullable: true,
    description:
      'Transcripts per month that the key may use of the quota of the organization. Null, the default, is all of it. The limit of a key does not change.',
  })
  monthlyLimit?: number | null;

  @ApiPropertyOptional({
    enum: SCOPES,
    isArray: true,
    minItems: 1,
    description:
      'What the key may do, by default both: `read`, and `write`, which changes jobs, subscriptions and webhooks. The scopes of a key do not change.',
    example: ['read'],
  })
  @Optional()
  @IsArray({ message: SCOPES_MESSAGE })
  @ArrayMinSize(1, { message: SCOPES_MESSAGE })
  @IsIn(SCOPES, { each: true, message: SCOPES_MESSAGE })
  scopes?: Scope[];
}

@ApiSchema({ name: 'RotationBody' })
export class RotateKeyDto {
  @OptionalInteger([0, GRACE_HOURS_MAX], {
    description: `The number of hours that the old key stays valid, ${GRACE_HOURS_DEFAULT} by default. 0 revokes it immediately.`,
  })
  graceHours: number = GRACE_HOURS_DEFAULT;
}

export class PageQueryDto {
  @PageLimit(ADMIN_PAGE_SIZE_DEFAULT)
  limit: number = ADMIN_PAGE_SIZE_DEFAULT;

  @PageAfter()
  after?: string;
}

export class OrganizationsQueryDto extends PageQueryDto {
  @ApiPropertyOptional({
    description: 'A part of the name, in any letter case. By default all organizations are returned.',
    minLength: 1,
    maxLength: NAME_LENGTH_MAX,
  })
  @Optional()
  @IsString({ message: 'name must be a part of a name, given once.' })
  name?: string;
}

export class AuditQueryDto extends PageQueryDto {
  @ApiPropertyOptional({
    type: 'string',
    description: 'The ID of an organization, deleted or not. By default the changes of all organizations are returned.',
  })
  @Optional()
  @IsString({ message: 'organization must be the ID of an organization, given once.' })
  organization?: string;
}

export class UsageRangeDto {
  @ReportDate('The first day (UTC) of a report, such as 2026-10-01. By default the first day of the current month.')
  from?: string;

  @ReportDate(
    `The day (UTC) after the last day of a report, at most ${REPORT_DAYS_MAX} days after \`from\`. By default the first day of the next month.`,
  )
  to?: string;
}

export class UsageQueryDto extends UsageRangeDto {
  @ApiPropertyOptional({
    enum: ['true', 'false'],
    default: 'false',
    description: 'Whether to compare the count of every month with the sum of its settled calls.',
  })
  @Optional()
  @IsIn(['true', 'false'], { message: 'verify must be true or false, given once.' })
  verify?: string;

  @ApiPropertyOptional({
    enum: REPORT_GROUPS,
    description:
      'What the rows of a report stand for: a day, an API key, or a channel, playlist or video. By default `day` when ' +
      '`from` or `to` is given; with none of the three no report is returned.',
  })
  @Optional()
  @IsIn(REPORT_GROUPS, { message: `by must be ${REPORT_GROUPS.join(', ')}, given once.` })
  by?: ReportGroup;
}

@ApiSchema({ name: 'PruneQuery' })
export class PruneQueryDto {
  @PageAfter()
  after?: string;
}

@ApiSchema({ name: 'AdminClient' })
export class AdminClientDto {
  @ApiProperty({ description: 'The client as tokens name it (`azp` or `client_id`).', example: 'console' })
  @IsString({ message: 'client must be a string.' })
  client: string;

  @ApiProperty({ description: 'Whether `/admin` refuses its tokens.', example: true })
  @IsBoolean({ message: 'blocked must be true or false.' })
  blocked: boolean;
}

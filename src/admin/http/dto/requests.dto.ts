import { ApiSchema } from '@nestjs/swagger';
import { SCOPES, type Scope } from '../../../domain/caller.js';
import { PLANS, type Plan } from '../../../domain/plan.js';
import { Field, OptionalFields, Picked, Restated } from '../../../http/routes/field.js';
import { PageQueryDto as CallersPageQueryDto } from '../../../http/routes/validation.js';
import {
  EXTERNAL_ID_LENGTH_MAX,
  GRACE_HOURS_DEFAULT,
  GRACE_HOURS_MAX,
  KEY_LIFETIME_DAYS_MAX,
  MONTHLY_LIMIT_MAX,
  NAME_LENGTH_MAX,
} from '../../../organizations/organization.entity.js';
import { DATE_FORMAT, REPORT_DAYS_MAX, REPORT_GROUPS, type ReportGroup } from '../../../quota/usage-report.js';
import { ORGANIZATION } from './responses.dto.js';

/** What is checked where names are stored, by characters. */
const NAME_DOCS = { minLength: 1, maxLength: NAME_LENGTH_MAX };

const ReportDate = (description: string): PropertyDecorator =>
  Field.text({ rule: 'a day such as 2026-10-01', pattern: DATE_FORMAT, docs: { format: 'date' }, description });

@ApiSchema({ name: 'NewOrganizationBody' })
export class CreateOrganizationDto {
  @Field.text({
    required: true,
    rule: 'a string',
    docs: NAME_DOCS,
    description: 'The name. Names need not be unique.',
    example: ORGANIZATION.name,
  })
  name: string;

  @Field.word({ words: PLANS, required: true, description: 'The plan.', example: ORGANIZATION.plan })
  plan: Plan;

  @Field.integer({
    min: 0,
    max: MONTHLY_LIMIT_MAX,
    nullable: true,
    description: 'Transcripts per month, instead of the limit of the plan. Null applies the limit of the plan.',
  })
  monthlyLimit?: number | null;

  @Field.text({
    rule: 'a string',
    nullable: true,
    docs: { minLength: 1, maxLength: EXTERNAL_ID_LENGTH_MAX },
    description:
      'The value of the claim `OIDC_ORGANIZATION_CLAIM` in the tokens of the organization. Null links it to none.',
  })
  externalId?: string | null;
}

@ApiSchema({ name: 'OrganizationChangeBody' })
export class UpdateOrganizationDto extends Restated(
  OptionalFields(Picked(CreateOrganizationDto, 'plan', 'monthlyLimit', 'externalId')),
  { plan: { description: 'The new plan.', example: undefined } },
) {}

@ApiSchema({ name: 'NewKeyBody' })
export class IssueKeyDto {
  @Field.text({
    rule: 'a string',
    docs: NAME_DOCS,
    default: 'default',
    description: 'A label for the purpose of the key.',
  })
  name: string;

  @Field.integer({
    min: 1,
    max: KEY_LIFETIME_DAYS_MAX,
    description: 'The number of days after which the key expires. By default it does not expire.',
  })
  expiresInDays?: number;

  @Field.integer({
    min: 0,
    max: MONTHLY_LIMIT_MAX,
    nullable: true,
    description:
      'Transcripts per month that the key may use of the quota of the organization. Null, the default, is all of it. The limit of a key does not change.',
  })
  monthlyLimit?: number | null;

  @Field.words({
    words: SCOPES,
    takesText: false,
    description:
      'What the key may do, by default both: `read`, and `write`, which changes jobs, subscriptions, webhooks, feed links and the library. The scopes of a key do not change.',
    example: ['read'],
  })
  scopes?: Scope[];
}

@ApiSchema({ name: 'RotationBody' })
export class RotateKeyDto {
  @Field.integer({
    min: 0,
    max: GRACE_HOURS_MAX,
    impliedDefault: GRACE_HOURS_DEFAULT,
    description: `The number of hours that the old key stays valid, ${GRACE_HOURS_DEFAULT} by default. 0 revokes it immediately.`,
  })
  graceHours: number;
}

export class PageQueryDto extends Restated(CallersPageQueryDto, { limit: { default: 50 } }) {}

export class OrganizationsQueryDto extends PageQueryDto {
  @Field.text({
    rule: 'a part of a name',
    docs: NAME_DOCS,
    description: 'A part of the name, in any letter case. By default all organizations are returned.',
  })
  name?: string;
}

export class AuditQueryDto extends PageQueryDto {
  @Field.text({
    rule: 'the ID of an organization',
    description: 'The ID of an organization, deleted or not. By default the changes of all organizations are returned.',
  })
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
  @Field.word({
    words: ['true', 'false'],
    default: 'false',
    description: 'Whether to compare the count of every month with the sum of its settled calls.',
  })
  verify?: string;

  @Field.word({
    words: REPORT_GROUPS,
    description:
      'What the rows of a report stand for: a day, an API key, or a channel, playlist or video. By default `day` when ' +
      '`from` or `to` is given; with none of the three no report is returned.',
  })
  by?: ReportGroup;
}

@ApiSchema({ name: 'PruneQuery' })
export class PruneQueryDto extends Picked(CallersPageQueryDto, 'after') {}

@ApiSchema({ name: 'AdminClient' })
export class AdminClientDto {
  @Field.text({
    required: true,
    rule: 'a string',
    description: 'The client as tokens name it (`azp` or `client_id`).',
    example: 'console',
  })
  client: string;

  @Field.boolean({ required: true, description: 'Whether `/admin` refuses its tokens.', example: true })
  blocked: boolean;
}

import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { count, dateTime, dateTimeOrNull, nextCursor, textOrNull } from '../../../http/response-docs.js';
import { PLANS, type Plan } from '../../../domain/plan.js';
import { AUDIT_ACTIONS } from '../../../organizations/audit-trail.js';
import type { Verification, VerifiedPeriod } from '../../../quota/usage.js';
import { REPORT_GROUPS, type ReportGroup, type UsageReport, type UsageReportRow } from '../../../quota/usage-report.js';
import type { Pruned } from '../../../quota/usage-retention.js';
import { USAGE_EXAMPLE, UsageDto, UsagePeriodDto } from '../../../usage/dto/usage.dto.js';

@ApiSchema({ name: 'Organization' })
export class OrganizationDto {
  @ApiProperty({ description: 'The ID of the organization.' })
  id: string;

  @ApiProperty({ description: 'The name. Names need not be unique.' })
  name: string;

  @ApiProperty({ enum: PLANS, description: 'The plan.' })
  plan: Plan;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Transcripts per month, instead of the limit of the plan. Null when the limit of the plan applies.',
  })
  monthlyLimit: number | null;

  @ApiProperty(dateTime('When the organization was created.'))
  createdAt: string;
}

@ApiSchema({ name: 'DeletedOrganization' })
export class DeletedOrganizationDto extends OrganizationDto {
  @ApiProperty(dateTime('When the organization was deleted.'))
  deletedAt: string;

  @ApiProperty(count('The number of valid keys that the deletion revoked.'))
  revokedKeys: number;
}

@ApiSchema({ name: 'OrganizationsPage' })
export class OrganizationsPageDto {
  @ApiProperty({ type: [OrganizationDto], description: 'The organizations, oldest first.' })
  organizations: OrganizationDto[];

  @ApiProperty(nextCursor)
  next: string | null;
}

@ApiSchema({ name: 'Key' })
export class KeyDto {
  @ApiProperty({ description: 'The ID of the key, for rotating and revoking it.' })
  id: string;

  @ApiProperty({ description: 'The ID of the organization that the key belongs to.' })
  organizationId: string;

  @ApiProperty({ description: 'A label for the purpose of the key.' })
  name: string;

  @ApiProperty({ description: 'The first characters of the key, which identify it in lists.' })
  prefix: string;

  @ApiProperty(dateTime('When the key was issued.'))
  createdAt: string;

  @ApiProperty(dateTimeOrNull('When the key expires. Null when it does not.'))
  expiresAt: string | null;

  @ApiProperty(dateTimeOrNull('When the key was revoked. Null when it was not.'))
  revokedAt: string | null;

  @ApiProperty(dateTimeOrNull('When the key was last used, accurate to one minute. Null when it was not used yet.'))
  lastUsedAt: string | null;

  @ApiProperty(textOrNull('The ID of the key that replaces it. Null when the key was not rotated.'))
  replacedBy: string | null;
}

@ApiSchema({ name: 'IssuedKey' })
export class IssuedKeyDto extends KeyDto {
  @ApiProperty({ description: 'The key itself. It is returned only this once and cannot be retrieved later.' })
  key: string;
}

@ApiSchema({ name: 'RotatedKey' })
export class RotatedKeyDto extends IssuedKeyDto {
  @ApiProperty({ description: 'The old key, with the end of its grace period as `expiresAt`.' })
  replaced: KeyDto;
}

@ApiSchema({ name: 'RevokedKey' })
export class RevokedKeyDto extends KeyDto {
  @ApiProperty({
    type: [KeyDto],
    description: 'Keys that this key replaced and whose grace period has not ended. Revoke each of them separately.',
  })
  stillValid: KeyDto[];
}

@ApiSchema({ name: 'KeysPage' })
export class KeysPageDto {
  @ApiProperty({ type: [KeyDto], description: 'The keys, including revoked and expired ones, oldest first.' })
  keys: KeyDto[];

  @ApiProperty(nextCursor)
  next: string | null;
}

/** The name of this component is released, so it stays beside the equal `UsagePeriod`. */
@ApiSchema({ name: 'Month' })
class MonthDto extends UsagePeriodDto {}

@ApiSchema({ name: 'VerifiedPeriod' })
class VerifiedPeriodDto implements VerifiedPeriod {
  @ApiProperty({ description: 'The month, such as `2026-05`.' })
  period: string;

  @ApiProperty(count('The number of charged transcripts that the quota is based on.'))
  used: number;

  @ApiProperty(count('The sum of the charges of all settled calls.'))
  recomputed: number;

  @ApiProperty(count('Transcripts that were fetched but settled too late to be charged.'))
  forfeited: number;

  @ApiProperty(count('The number of settled calls.'))
  settledCalls: number;
}

@ApiSchema({ name: 'Verification' })
class VerificationDto implements Verification {
  @ApiProperty({ description: 'Whether `used` equals `recomputed` in every month.' })
  exact: boolean;

  @ApiProperty({ type: [VerifiedPeriodDto], description: 'The months within the retention period, oldest first.' })
  periods: VerifiedPeriodDto[];
}

@ApiSchema({ name: 'UsageReportRow' })
export class UsageReportRowDto implements UsageReportRow {
  @ApiProperty({ description: 'The day, the ID of the API key, or the ID of the channel, playlist or video.' })
  group: string;

  @ApiProperty(count('Settled calls. A part of an archive job that was settled is one call.'))
  calls: number;

  @ApiProperty(count('Transcripts charged.'))
  charged: number;

  @ApiProperty(count('Transcripts that were fetched but settled too late to be charged.'))
  forfeited: number;
}

@ApiSchema({ name: 'UsageReport' })
export class UsageReportDto implements UsageReport {
  @ApiProperty({ type: String, format: 'date', description: 'The first day (UTC).' })
  from: string;

  @ApiProperty({ type: String, format: 'date', description: 'The day (UTC) after the last one.' })
  to: string;

  @ApiProperty({ enum: REPORT_GROUPS, description: 'What the rows stand for.' })
  by: ReportGroup;

  @ApiProperty(count('The sum of all rows: the transcripts charged within these days.'))
  charged: number;

  @ApiProperty({
    type: [UsageReportRowDto],
    description: 'Sorted by `group`. A call belongs to the day on which it began. Days without calls are absent.',
  })
  rows: UsageReportRowDto[];
}

@ApiSchema({ name: 'AdminUsage' })
export class AdminUsageDto extends UsageDto {
  @ApiProperty({ type: MonthDto, description: 'The calendar month (UTC) that the counts apply to.' })
  override period: MonthDto;

  @ApiPropertyOptional(dateTime('When the organization was deleted. Present only for a deleted organization.'))
  deletedAt?: string;

  @ApiPropertyOptional({
    type: VerificationDto,
    description: 'The comparison of each month with its settled calls. Present with `verify=true`.',
  })
  verification?: VerificationDto;

  @ApiPropertyOptional({
    type: UsageReportDto,
    description: 'What was charged within some days. Present with `from`, `to` or `by`.',
  })
  report?: UsageReportDto;
}

@ApiSchema({ name: 'Pruned' })
export class PrunedDto implements Pruned {
  @ApiProperty(count('The retention period in whole months, in addition to the current one.'))
  retentionMonths: number;

  @ApiProperty({ description: 'The oldest month within the retention period, such as `2024-11`.' })
  keptFrom: string;

  @ApiProperty(count('The number of removed months, counted per organization.'))
  periods: number;

  @ApiProperty(count('The number of removed calls.'))
  calls: number;
}

const valuesOrNull = (description: string) =>
  ({ type: 'object', additionalProperties: true, nullable: true, description }) as const;

@ApiSchema({ name: 'AuditEntry' })
export class AuditEntryDto {
  @ApiProperty({ description: 'The ID of the entry. Later entries have higher IDs.' })
  id: string;

  @ApiProperty(dateTime('When the change was made.'))
  at: string;

  @ApiProperty({ enum: ['admin', 'cli'], description: 'Who made it: `admin` over HTTP, `cli` by a command.' })
  actor: 'admin' | 'cli';

  @ApiProperty({ enum: AUDIT_ACTIONS, description: 'What was done.' })
  action: (typeof AUDIT_ACTIONS)[number];

  @ApiProperty(textOrNull('The organization. Null for `usage.pruned`.'))
  organizationId: string | null;

  @ApiProperty(textOrNull('The ID of the organization, key or job that was changed. Null for `usage.pruned`.'))
  target: string | null;

  @ApiProperty(valuesOrNull('The changed values before. Null when there were none.'))
  before: Readonly<Record<string, unknown>> | null;

  @ApiProperty(valuesOrNull('The changed values after. API keys and other secrets are never among them.'))
  after: Readonly<Record<string, unknown>> | null;

  @ApiProperty(textOrNull('The ID of the request. Null for a command.'))
  requestId: string | null;
}

@ApiSchema({ name: 'AuditPage' })
export class AuditPageDto {
  @ApiProperty({ type: [AuditEntryDto], description: 'The changes, newest first.' })
  entries: AuditEntryDto[];

  @ApiProperty(nextCursor)
  next: string | null;
}

// The examples of the OpenAPI document.

export const ORGANIZATION: OrganizationDto = {
  id: USAGE_EXAMPLE.organization,
  name: 'Acme',
  plan: 'pro',
  monthlyLimit: null,
  createdAt: '2026-11-02T09:30:00.000Z',
};

export const DELETED_ORGANIZATION: DeletedOrganizationDto = {
  ...ORGANIZATION,
  deletedAt: '2026-11-20T16:00:00.000Z',
  revokedKeys: 2,
};

export const KEY: KeyDto = {
  id: 'key_5b1f6a2c9d3e4f7081a2b3c4',
  organizationId: ORGANIZATION.id,
  name: 'server',
  prefix: 'ctk_4fGh2K',
  createdAt: '2026-11-02T09:31:00.000Z',
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  replacedBy: null,
};

export const ISSUED_KEY: IssuedKeyDto = { ...KEY, key: 'ctk_4fGh2K…' };

export const ROTATED_KEY: RotatedKeyDto = {
  ...ISSUED_KEY,
  id: 'key_c4b3a2817f4e3d9c2a6f1b5b',
  prefix: 'ctk_9sTu7V',
  key: 'ctk_9sTu7V…',
  createdAt: '2026-11-20T16:00:00.000Z',
  replaced: { ...KEY, expiresAt: '2026-11-21T16:00:00.000Z', replacedBy: 'key_c4b3a2817f4e3d9c2a6f1b5b' },
};

export const REVOKED_KEY: RevokedKeyDto = {
  ...KEY,
  id: ROTATED_KEY.id,
  prefix: ROTATED_KEY.prefix,
  createdAt: ROTATED_KEY.createdAt,
  revokedAt: '2026-11-20T18:00:00.000Z',
  stillValid: [ROTATED_KEY.replaced],
};

export const ADMIN_USAGE: AdminUsageDto = {
  ...USAGE_EXAMPLE,
  verification: {
    exact: true,
    periods: [{ period: '2026-11', used: 120, recomputed: 120, forfeited: 0, settledCalls: 9 }],
  },
  report: {
    from: '2026-10-01',
    to: '2026-11-01',
    by: 'day',
    charged: 3480,
    rows: [
      { group: '2026-10-05', calls: 40, charged: 2480, forfeited: 0 },
      { group: '2026-10-19', calls: 10, charged: 1000, forfeited: 0 },
    ],
  },
};

export const AUDIT_PAGE: AuditPageDto = {
  entries: [
    {
      id: '4212',
      at: '2026-11-20T16:00:00.000Z',
      actor: 'admin',
      action: 'organization.plan_changed',
      organizationId: ORGANIZATION.id,
      target: ORGANIZATION.id,
      before: { plan: 'free' },
      after: { plan: 'pro' },
      requestId: 'invoice-2026-11',
    },
  ],
  next: null,
};

export const PRUNED: PrunedDto = { retentionMonths: 24, keptFrom: '2024-11', periods: 3, calls: 4120 };

import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { PLANS } from '../../../domain/plan.js';

const time = (description: string) => ({ type: String, format: 'date-time', description }) as const;
const timeOrNever = (description: string) => ({ ...time(description), nullable: true }) as const;

@ApiSchema({ name: 'Organization' })
export class OrganizationSchema {
  @ApiProperty({ description: 'Its id.' })
  id: string;

  @ApiProperty({ description: 'What it is called; several can have one name.' })
  name: string;

  @ApiProperty({ enum: PLANS, description: 'Its plan.' })
  plan: string;

  @ApiProperty({ type: 'integer', nullable: true, description: 'Transcripts a month; null follows the plan.' })
  monthlyLimit: number | null;

  @ApiProperty(time('When it was made.'))
  createdAt: string;
}

@ApiSchema({ name: 'DeletedOrganization' })
export class DeletedOrganizationSchema extends OrganizationSchema {
  @ApiProperty(time('When it was deleted.'))
  deletedAt: string;

  @ApiProperty({ type: 'integer', description: 'How many keys were good until then.' })
  revokedKeys: number;
}

@ApiSchema({ name: 'OrganizationsPage' })
export class OrganizationsPageSchema {
  @ApiProperty({ type: [OrganizationSchema], description: 'The oldest first.' })
  organizations: OrganizationSchema[];

  @ApiProperty({ type: String, nullable: true, description: 'The `after` of the next page; null at the end.' })
  next: string | null;
}

@ApiSchema({ name: 'Key' })
export class KeySchema {
  @ApiProperty({ description: 'Its id, by which it is rotated and revoked.' })
  id: string;

  @ApiProperty({ description: 'The id of the organization that it stands for.' })
  organizationId: string;

  @ApiProperty({ description: 'What it is for.' })
  name: string;

  @ApiProperty({ description: 'The start of the key, for people to tell keys apart by.' })
  prefix: string;

  @ApiProperty(time('When it was issued.'))
  createdAt: string;

  @ApiProperty(timeOrNever('When it ends; null is never.'))
  expiresAt: string | null;

  @ApiProperty(timeOrNever('When it was revoked.'))
  revokedAt: string | null;

  @ApiProperty(timeOrNever('When it was last used, exact to a minute.'))
  lastUsedAt: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'The id of the key that was issued in its place.' })
  replacedBy: string | null;
}

@ApiSchema({ name: 'IssuedKey' })
export class IssuedKeySchema extends KeySchema {
  @ApiProperty({ description: 'The key itself. It is shown this once and kept nowhere.' })
  key: string;
}

@ApiSchema({ name: 'RotatedKey' })
export class RotatedKeySchema extends IssuedKeySchema {
  @ApiProperty({ description: 'The old key, with its new end.' })
  replaced: KeySchema;
}

@ApiSchema({ name: 'RevokedKey' })
export class RevokedKeySchema extends KeySchema {
  @ApiProperty({
    type: [KeySchema],
    description:
      'Keys in whose place this one was issued and that are valid until their grace period ends; revoke each by its id.',
  })
  stillValid: KeySchema[];
}

@ApiSchema({ name: 'KeysPage' })
export class KeysPageSchema {
  @ApiProperty({ type: [KeySchema], description: 'The oldest first, revoked and expired ones included.' })
  keys: KeySchema[];

  @ApiProperty({ type: String, nullable: true, description: 'The `after` of the next page; null at the end.' })
  next: string | null;
}

@ApiSchema({ name: 'Month' })
class MonthSchema {
  @ApiProperty({ type: String, format: 'date-time', description: 'The first moment of the month (UTC).' })
  start: string;

  @ApiProperty({ type: String, format: 'date-time', description: 'The first moment of the next month (UTC).' })
  end: string;
}

@ApiSchema({ name: 'VerifiedPeriod' })
class VerifiedPeriodSchema {
  @ApiProperty({ description: 'The month, e.g. `2026-05`.' })
  period: string;

  @ApiProperty({ type: 'integer', description: 'The count that the quota goes by.' })
  used: number;

  @ApiProperty({ type: 'integer', description: 'The sum over the settled calls.' })
  recomputed: number;

  @ApiProperty({ type: 'integer', description: 'Fetched, but settled too late to be charged.' })
  forfeited: number;

  @ApiProperty({ type: 'integer', description: 'How many calls were settled.' })
  settledCalls: number;
}

@ApiSchema({ name: 'Verification' })
class VerificationSchema {
  @ApiProperty({ description: 'Whether both figures agree in every month.' })
  exact: boolean;

  @ApiProperty({ type: [VerifiedPeriodSchema], description: 'The months that are kept, the oldest first.' })
  periods: VerifiedPeriodSchema[];
}

@ApiSchema({ name: 'AdminUsage' })
export class AdminUsageSchema {
  @ApiProperty({ description: 'The id of the organization.' })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'Its plan.' })
  plan: string;

  @ApiProperty({ description: 'The calendar month in UTC that the counts are of.' })
  period: MonthSchema;

  @ApiProperty({ type: 'integer', description: 'Transcripts a month.' })
  limit: number;

  @ApiProperty({ type: 'integer', description: 'Transcripts charged this month.' })
  used: number;

  @ApiProperty({ type: 'integer', description: 'Transcripts held for calls that are under way.' })
  reserved: number;

  @ApiProperty({ type: 'integer', description: 'What a call can still reserve.' })
  remaining: number;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Only of an organization that was deleted.' })
  deletedAt?: string;

  @ApiPropertyOptional({ type: VerificationSchema, description: 'With `verify=true`.' })
  verification?: VerificationSchema;
}

@ApiSchema({ name: 'Pruned' })
export class PrunedSchema {
  @ApiProperty({ type: 'integer', description: 'Whole months that are kept beside the current one.' })
  retentionMonths: number;

  @ApiProperty({ description: 'The oldest month that is kept, e.g. `2024-11`.' })
  keptFrom: string;

  @ApiProperty({ type: 'integer', description: 'Months of an organization that were removed.' })
  periods: number;

  @ApiProperty({ type: 'integer', description: 'Calls that were removed with them.' })
  calls: number;
}

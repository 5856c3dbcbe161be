import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { PLANS, type Plan } from '../domain/plan.js';
import { count, dateTime, textOrNull } from '../domain/schema-fields.js';
import { ApiField } from '../http/routes/response-docs.js';

export const NAME_LENGTH_MAX = 100;
/** Control characters, lone surrogates and line separators, which a text that is displayed must not have. */
const CONTROL_CHARACTER = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Of what an identity provider calls an organization. */
export const EXTERNAL_ID_LENGTH_MAX = 255;

/**
 * Brings a text that is stored and compared into the one form that it has wherever it comes from: without spaces around it, in NFC.
 *
 * @returns undefined unless it has 1 to `lengthMax` characters then, none of them a control character
 */
export function normalizedText(text: string, lengthMax: number): string | undefined {
  const normalized = text.trim().normalize('NFC');
  const { length } = Array.from(normalized);
  return length >= 1 && length <= lengthMax && !CONTROL_CHARACTER.test(normalized) ? normalized : undefined;
}

/** The largest value of the database column. */
export const MONTHLY_LIMIT_MAX = 2_147_483_647;
export const KEY_LIFETIME_DAYS_MAX = 36_500;
/** How long a rotated key can stay valid. */
export const GRACE_HOURS_MAX = 24 * 365;
export const GRACE_HOURS_DEFAULT = 24;

/** The organization that `transcripts`, `archive` and `follow` call as. The first of them creates it. */
export const COMMANDS_ORGANIZATION_ID = 'org_commands';

/** A customer. IDs are unique; names need not be. */
@Entity('organizations')
@ApiSchema({ name: 'Organization' })
export class Organization {
  @ApiProperty({ description: 'The ID of the organization.' })
  @PrimaryColumn('text')
  id: string;

  @ApiProperty({ description: 'The name. Names need not be unique.' })
  @Column('text')
  name: string;

  @ApiProperty({ enum: PLANS, description: 'The plan.' })
  @Column('text')
  plan: Plan;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Transcripts per month, instead of the limit of the plan. Null when the limit of the plan applies.',
  })
  @Column({ type: 'integer', name: 'monthly_limit', nullable: true })
  monthlyLimit: number | null;

  @ApiField(
    textOrNull('What the tokens of the identity provider call the organization. Null when it is linked to none.'),
  )
  @Column({ type: 'text', name: 'external_id', nullable: true })
  externalId: string | null;

  @ApiField(dateTime('When the organization was created.'))
  @Column({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  /** Read of a deletion only. */
  @Column({ type: 'timestamptz', name: 'deleted_at', nullable: true, select: false })
  deletedAt?: Date | null;
}

@ApiSchema({ name: 'CreatedOrganization' })
export class CreatedOrganization extends Organization {
  @ApiPropertyOptional({
    type: [String],
    description:
      'The IDs of other organizations with this name, at most ten. Present only if there are any: commands then need the ID.',
  })
  sameName?: string[];
}

@ApiSchema({ name: 'DeletedOrganization' })
export class DeletedOrganization extends Organization {
  @ApiField(dateTime('When the organization was deleted.'))
  override deletedAt: Date;

  @ApiField(count('The number of valid keys that the deletion revoked.'))
  revokedKeys: number;
}

import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { PLANS, type Plan } from '../../domain/plan.js';
import type { MonthUsed, Usage } from '../../quota/usage.js';

/** The example of the OpenAPI document. */
export const USAGE_EXAMPLE = {
  organization: 'org_0a1b2c3d4e5f6a7b8c9d0e1f',
  plan: 'pro',
  period: { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' },
  limit: 5000,
  used: 120,
  reserved: 25,
  remaining: 4855,
  history: [
    { period: '2026-11', used: 120 },
    { period: '2026-10', used: 3480 },
  ],
} satisfies UsageDto;

@ApiSchema({ name: 'UsagePeriod' })
export class UsagePeriodDto {
  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'The start of the month (UTC).',
    example: USAGE_EXAMPLE.period.start,
  })
  start: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'The start of the next month (UTC), when the quota resets.',
    example: USAGE_EXAMPLE.period.end,
  })
  end: string;
}

@ApiSchema({ name: 'MonthUsed' })
export class MonthUsedDto implements MonthUsed {
  @ApiProperty({ description: 'The calendar month (UTC).', example: '2026-10' })
  period: string;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'Transcripts charged in the month.', example: 3480 })
  used: number;
}

@ApiSchema({ name: 'Usage' })
export class UsageDto implements Usage {
  @ApiProperty({ description: 'The ID of the organization.', example: USAGE_EXAMPLE.organization })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'The plan of the organization.', example: USAGE_EXAMPLE.plan })
  plan: Plan;

  @ApiProperty({ description: 'The calendar month (UTC) that the counts apply to.' })
  period: UsagePeriodDto;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'The number of transcripts that the organization can fetch per month.',
    example: USAGE_EXAMPLE.limit,
  })
  limit: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts charged this month.',
    example: USAGE_EXAMPLE.used,
  })
  used: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts reserved by requests in progress.',
    example: USAGE_EXAMPLE.reserved,
  })
  reserved: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts that can still be reserved this month.',
    example: USAGE_EXAMPLE.remaining,
  })
  remaining: number;

  @ApiProperty({
    type: [MonthUsedDto],
    description:
      'The current month and the five before it, newest first. Months in which nothing was charged, and months whose usage ' +
      'was pruned, are absent.',
  })
  history: MonthUsedDto[];
}

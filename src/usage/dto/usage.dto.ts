import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { count, dateTime } from '../../http/response-docs.js';
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
  @ApiProperty(dateTime('The start of the month (UTC).'))
  start: string;

  @ApiProperty(dateTime('The start of the next month (UTC), when the quota resets.'))
  end: string;
}

@ApiSchema({ name: 'MonthUsed' })
export class MonthUsedDto implements MonthUsed {
  @ApiProperty({ description: 'The calendar month (UTC).' })
  period: string;

  @ApiProperty(count('Transcripts charged in the month.'))
  used: number;
}

@ApiSchema({ name: 'Usage' })
export class UsageDto implements Usage {
  @ApiProperty({ description: 'The ID of the organization.' })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'The plan of the organization.' })
  plan: Plan;

  @ApiProperty({ description: 'The calendar month (UTC) that the counts apply to.' })
  period: UsagePeriodDto;

  @ApiProperty(count('The number of transcripts that the organization can fetch per month.'))
  limit: number;

  @ApiProperty(count('Transcripts charged this month.'))
  used: number;

  @ApiProperty(count('Transcripts reserved by requests in progress.'))
  reserved: number;

  @ApiProperty(count('Transcripts that can still be reserved this month.'))
  remaining: number;

  @ApiProperty({
    type: [MonthUsedDto],
    description:
      'The current month and the five before it, newest first. Months in which nothing was charged, and months whose usage ' +
      'was pruned, are absent.',
  })
  history: MonthUsedDto[];
}

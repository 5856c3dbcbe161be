import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { PLANS } from '../../domain/plan.js';

@ApiSchema({ name: 'UsagePeriod' })
class UsagePeriodSchema {
  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'The first moment of the month (UTC).',
    example: '2026-11-01T00:00:00.000Z',
  })
  start: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'The first moment of the next month (UTC).',
    example: '2026-12-01T00:00:00.000Z',
  })
  end: string;
}

@ApiSchema({ name: 'Usage' })
export class UsageDto {
  @ApiProperty({ description: 'The id of the organization whose quota it is.', example: 'org_7Zk2mQ9xR4tB' })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'The plan of the organization.', example: 'pro' })
  plan: string;

  @ApiProperty({ description: 'The calendar month in UTC that the counts are of.' })
  period: UsagePeriodSchema;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'Transcripts a month.', example: 5000 })
  limit: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'Transcripts charged this month.', example: 120 })
  used: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    description: 'Transcripts held for calls that are under way.',
    example: 25,
  })
  reserved: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'What a call can still reserve.', example: 4855 })
  remaining: number;
}

import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { PLANS, type Plan } from '../domain/plan.js';
import { countField, dateTime } from '../http/routes/response-docs.js';

// ISO 8601 throughout; a month is written as `2026-05`. Counts are transcripts.

export class UsagePeriod {
  @ApiProperty(dateTime('The start of the month (UTC).'))
  start: string;

  @ApiProperty(dateTime('The start of the next month (UTC), when the quota resets.'))
  end: string;
}

export class MonthUsed {
  @ApiProperty({ description: 'The calendar month (UTC).' })
  period: string;

  @ApiProperty(countField('Transcripts charged in the month.'))
  used: number;
}

/** The counts of an organization, or of an API key with a limit of its own. */
export class UsageCounts {
  @ApiProperty(countField('The number of transcripts that can be fetched per month.'))
  limit: number;

  @ApiProperty(countField('Transcripts charged this month.'))
  used: number;

  @ApiProperty(countField('Transcripts reserved by requests in progress.'))
  reserved: number;

  @ApiProperty(countField('Transcripts that can still be reserved this month.'))
  remaining: number;
}

@ApiSchema({ name: 'QuotaEventData' })
class QuotaEventDataDto {
  @ApiProperty({ enum: [80, 100], description: 'The share of the limit that was reached, in percent.' })
  threshold: number;

  @ApiProperty(countField('Transcripts charged in the month, the charge that reached the threshold included.'))
  used: number;

  @ApiProperty(countField('The monthly limit in force at that time.'))
  limit: number;

  @ApiProperty({ description: 'The calendar month (UTC).' })
  period: string;
}

/** The body of a message to a webhook about the quota of the organization, by the database function `quota_announce`. */
@ApiSchema({ name: 'QuotaEvent' })
export class QuotaEventDto {
  @ApiProperty({ enum: ['quota.threshold'], description: 'The event.' })
  type: string;

  @ApiProperty({ format: 'date-time', description: 'When the event occurred.' })
  timestamp: string;

  @ApiProperty({ description: 'The quota.' })
  data: QuotaEventDataDto;
}

/** An organization's quota in the current calendar month (UTC). */
export class Usage extends UsageCounts {
  @ApiProperty({ description: 'The ID of the organization.' })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'The plan of the organization.' })
  plan: Plan;

  @ApiProperty({ description: 'The calendar month (UTC) that the counts apply to.' })
  period: UsagePeriod;

  @ApiProperty({
    type: [MonthUsed],
    description:
      'The current month and the five before it, newest first. Months in which nothing was charged, and months whose usage ' +
      'was pruned, are absent.',
  })
  history: MonthUsed[];

  @ApiPropertyOptional({
    description:
      'The same for the calling API key. Absent when it has no limit of its own. Keys that were rotated share their limit and ' +
      'their counts; `remaining` is never more than that of the organization.',
  })
  key?: UsageCounts;

  /** Only set for a deleted organization, whose usage operators can read. */
  deletedAt?: string;
}

import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { PLANS, type Plan } from '../domain/plan.js';
import { countField, dateTime } from '../http/response-docs.js';

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

/** What an API key with a limit of its own has used. Keys that were rotated share their limit and their counts. */
export class KeyUsage {
  @ApiProperty(countField('The number of transcripts that the key can fetch per month.'))
  limit: number;

  @ApiProperty(countField('Transcripts charged to the key this month.'))
  used: number;

  @ApiProperty(countField('Transcripts reserved by requests of the key in progress.'))
  reserved: number;

  @ApiProperty(
    countField('Transcripts that the key can still reserve this month: never more than the organization can.'),
  )
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
export class Usage {
  @ApiProperty({ description: 'The ID of the organization.' })
  organization: string;

  @ApiProperty({ enum: PLANS, description: 'The plan of the organization.' })
  plan: Plan;

  @ApiProperty({ description: 'The calendar month (UTC) that the counts apply to.' })
  period: UsagePeriod;

  @ApiProperty(countField('The number of transcripts that the organization can fetch per month.'))
  limit: number;

  @ApiProperty(countField('Transcripts charged this month.'))
  used: number;

  @ApiProperty(countField('Transcripts reserved by requests in progress.'))
  reserved: number;

  @ApiProperty(countField('Transcripts that can still be reserved this month.'))
  remaining: number;

  @ApiProperty({
    type: [MonthUsed],
    description:
      'The current month and the five before it, newest first. Months in which nothing was charged, and months whose usage ' +
      'was pruned, are absent.',
  })
  history: MonthUsed[];

  @ApiPropertyOptional({ description: 'The limit of the calling API key. Absent when it has none of its own.' })
  key?: KeyUsage;

  /** Only set for a deleted organization, whose usage operators can read. */
  deletedAt?: string;
}

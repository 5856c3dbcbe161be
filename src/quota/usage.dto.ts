import { ApiProperty } from '@nestjs/swagger';
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

  /** Only set for a deleted organization, whose usage operators can read. */
  deletedAt?: string;
}

import { z } from 'zod';
import { count, dateTime } from '../domain/schema-fields.js';
import { PLANS } from '../domain/plan.js';

// ISO 8601 throughout; a month is written as `2026-05`. Counts are transcripts.

const UsagePeriod = z
  .object({
    start: dateTime('The start of the month (UTC).'),
    end: dateTime('The start of the next month (UTC), when the quota resets.'),
  })
  .meta({ id: 'UsagePeriod' });

const MonthUsed = z
  .object({
    period: z.string().describe('The calendar month (UTC).'),
    used: count('Transcripts charged in the month.'),
  })
  .meta({ id: 'MonthUsed' });
export type MonthUsed = z.infer<typeof MonthUsed>;

/** The counts of an organization, or of an API key with a limit of its own. */
const UsageCounts = z
  .object({
    limit: count('The number of transcripts that can be fetched per month.'),
    used: count('Transcripts charged this month.'),
    reserved: count('Transcripts reserved by requests in progress.'),
    remaining: count('Transcripts that can still be reserved this month.'),
  })
  .meta({ id: 'UsageCounts' });

const LibraryUsage = z
  .object({
    videos: count('The videos in the library.'),
    megabytes: count('The size of their compressed texts and of the index of their words, rounded up.'),
    limitMegabytes: count('The size from which on new texts are delivered without being kept.'),
  })
  .meta({ id: 'LibraryUsage' });
export type LibraryUsage = z.infer<typeof LibraryUsage>;

const QuotaEventData = z
  .object({
    threshold: z.literal([80, 100]).describe('The share of the limit that was reached, in percent.'),
    used: count('Transcripts charged in the month, the charge that reached the threshold included.'),
    limit: count('The monthly limit in force at that time.'),
    period: MonthUsed.shape.period,
  })
  .meta({ id: 'QuotaEventData' });

/** The body of a message to a webhook about the quota of the organization, by the database function `quota_announce`. */
export const QuotaEventDto = z
  .object({
    type: z.literal('quota.threshold').describe('The event.'),
    timestamp: dateTime('When the event occurred.'),
    data: QuotaEventData.describe('The quota.'),
  })
  .meta({ id: 'QuotaEvent' });

/** An organization's quota in the current calendar month (UTC). */
export const Usage = UsageCounts.extend({
  organization: z.string().describe('The ID of the organization.'),
  plan: z.enum(PLANS).describe('The plan of the organization.'),
  period: UsagePeriod.describe('The calendar month (UTC) that the counts apply to.'),
  history: z
    .array(MonthUsed)
    .describe(
      'The current month and the five before it, newest first. Months in which nothing was charged, and months whose usage ' +
        'was pruned, are absent.',
    ),
  library: LibraryUsage.describe('What the organization keeps.'),
  key: UsageCounts.exactOptional().describe(
    'The same for the calling API key. Absent when it has no limit of its own. Keys that were rotated share their limit and ' +
      'their counts; `remaining` is never more than that of the organization.',
  ),
}).meta({ id: 'Usage' });
export type Usage = z.infer<typeof Usage> & {
  /** Only set for a deleted organization, whose usage operators can read. */
  deletedAt?: string;
};

/** The example of the OpenAPI document. */
export const USAGE_EXAMPLE: Usage = {
  organization: 'org_0a1b2c3d4e5f6a7b8c9d0e1f',
  plan: 'pro',
  period: { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' },
  ...{ limit: 5000, used: 120, reserved: 25, remaining: 4855 },
  history: [{ period: '2026-11', used: 120 }],
  library: { videos: 310, megabytes: 42, limitMegabytes: 2048 },
};

import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { EntryDto, TRANSCRIPTS_EXAMPLE } from '../../transcripts/dto/transcripts-response.dto.js';
import { JobDto, RUNNING_JOB_EXAMPLE } from './job.dto.js';

/** The example of the OpenAPI document: the first two entries of a running job. */
export const RESULTS_EXAMPLE = {
  results: TRANSCRIPTS_EXAMPLE.results,
  next: 2,
  job: RUNNING_JOB_EXAMPLE,
} satisfies JobResultsDto;

/** The same as NDJSON. */
export const RESULTS_NDJSON_EXAMPLE = [
  ...RESULTS_EXAMPLE.results.map((result, index) => ({ type: 'result', position: index + 1, result })),
  { type: 'summary', summary: RUNNING_JOB_EXAMPLE.summary, next: RESULTS_EXAMPLE.next, job: RUNNING_JOB_EXAMPLE },
]
  .map((event) => `${JSON.stringify(event)}\n`)
  .join('');

/** Written as text by `ResultsResponse`, because stored entries are already JSON. */
@ApiSchema({ name: 'JobResults' })
export class JobResultsDto {
  @ApiProperty({
    type: [EntryDto],
    description:
      "Entries of the job in the order of the channel's uploads, newest first. A page ends before the first pending video.",
  })
  results: EntryDto[];

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 0,
    description:
      'The `after` of the next page. Null at the end of a finished job only: while the job runs, request `after=next` again ' +
      'later.',
    example: RESULTS_EXAMPLE.next,
  })
  next: number | null;

  @ApiProperty({ description: 'The job at the time of the last entry.' })
  job: JobDto;
}

import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { HeldTexts, ResponseMemory } from '../transcripts/response/response-memory.js';
import { writeResponse, type Chunk } from '../transcripts/response/response-writer.js';
import { encodingFor, NDJSON } from '../transcripts/response/transcripts-response.js';
import { pageSize } from './dto/jobs-request.dto.js';
import type { JobResultsPage } from './job.js';
import { JobsService } from './jobs.service.js';

/** Entries that are read from the database at a time, which is what a slow reader holds in memory. */
const ENTRIES_PER_READ = 20;

/** The JSON around the entries of a response. */
interface Format {
  head: string;
  separator: string;
  before: (position: number) => string;
  after: string;
  tail: (end: Pick<JobResultsPage, 'next' | 'job'>) => string;
}

const FORMATS = {
  'application/json': {
    head: '{"results":[',
    separator: ',',
    before: () => '',
    after: '',
    tail: ({ next, job }) => `],"next":${next},"job":${JSON.stringify(job)}}`,
  },
  [NDJSON]: {
    head: '',
    separator: '',
    before: (position) => `{"type":"result","position":${position},"result":`,
    after: '}\n',
    tail: ({ next, job }) => `${JSON.stringify({ type: 'summary', summary: job.summary, next, job })}\n`,
  },
} as const satisfies Record<string, Format>;

/** Which results of a job to send. */
interface WantedResults {
  organizationId: string;
  jobId: string;
  /** By default all as NDJSON, and a page as JSON. */
  limit?: number | undefined;
  after?: number | undefined;
}

/** Sends the stored results of a job, read in small parts and no faster than the reader takes them. */
@Injectable()
export class ResultsResponse {
  constructor(
    private readonly jobs: JobsService,
    private readonly memory: ResponseMemory,
  ) {}

  /**
   * Sends a page as JSON, or all entries as NDJSON when the request accepts it. After the first byte an error destroys
   * the connection.
   *
   * @throws JobNotFoundError, ResultsExpiredError; ServiceUnavailableError when too much memory waits for slow readers
   */
  async send(wanted: WantedResults, request: Request, response: Response): Promise<void> {
    this.memory.refuseWhenFull();
    const type = request.accepts(['application/json', NDJSON]) === NDJSON ? NDJSON : 'application/json';
    const range = rangeOf(type, wanted);
    const encoding = encodingFor(request);
    const first = await this.read(wanted, range);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    response.setHeader('Content-Type', `${type}; charset=utf-8`);
    const texts = new HeldTexts(this.memory);
    try {
      const parts = this.parts(wanted, range, first, texts);
      await writeResponse(response, serialize(FORMATS[type], parts, range), encoding);
    } finally {
      texts.close();
    }
  }

  /** Reads on from the first part. The texts of a part count as held until the next one is asked for. */
  private async *parts(
    job: WantedResults,
    range: Range,
    first: JobResultsPage,
    texts: HeldTexts,
  ): AsyncGenerator<JobResultsPage> {
    let part = first;
    for (let missing = range.limit; ;) {
      for (const { text } of part.entries) texts.addFetched(text.deflated);
      yield part;
      for (const { text } of part.entries) texts.releaseFetched(text.deflated);
      missing -= part.entries.length;
      // A part without entries ends at the end of the job, or before a video that is not decided.
      if (missing === 0 || part.next === null || part.entries.length === 0) return;
      part = await this.read(job, { ...range, limit: missing, after: part.next });
    }
  }

  private read(
    { organizationId, jobId }: WantedResults,
    { limit, after, pastPending }: Range,
  ): Promise<JobResultsPage> {
    const count = Math.min(limit, this.memory.isFull ? 1 : ENTRIES_PER_READ);
    return this.jobs.results(organizationId, jobId, { limit: count, after, pastPending });
  }
}

interface Range {
  limit: number;
  after: number;
  /** Whether entries after a pending video are sent. */
  pastPending: boolean;
}

/** Only a response without a limit has the entries after a pending video: pages of them could not be continued. */
function rangeOf(type: keyof typeof FORMATS, { limit, after = 0 }: WantedResults): Range {
  if (type !== NDJSON) return { limit: pageSize(limit), after, pastPending: false };
  return { limit: limit ?? Infinity, after, pastPending: limit === undefined };
}

async function* serialize(format: Format, parts: AsyncIterable<JobResultsPage>, range: Range): AsyncGenerator<Chunk> {
  yield [format.head];
  let separator = '';
  /** The position up to which every entry was sent. */
  let complete = range.after;
  /** Whether a video was passed that was still pending. It can be decided before the last part is read. */
  let hasPassedPending = false;
  let last: JobResultsPage | undefined;
  for await (const part of parts) {
    last = part;
    for (const { position, text } of part.entries) {
      yield [separator + format.before(position), text, format.after];
      separator = format.separator;
      if (position === complete + 1) complete = position;
      else hasPassedPending ||= !part.isFinal;
    }
  }
  if (!last) throw new Error('The results have no first part.');
  const { job, next } = last;
  const isComplete = next === null && !hasPassedPending;
  yield [format.tail({ job, next: range.pastPending && !isComplete ? complete : next })];
}

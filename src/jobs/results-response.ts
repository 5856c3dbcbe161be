import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Environment } from '../config/environment.js';
import { HeldTexts, ResponseMemory } from '../transcripts/response-memory.js';
import type { Chunk } from '../transcripts/formats/json.js';
import { writeResponse } from '../transcripts/response/response-writer.js';
import { encodingFor, NDJSON } from '../transcripts/response/transcripts-response.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../http/validation.js';
import type { ResultsQueryDto } from './dto/jobs-request.dto.js';
import { JobsService, type JobResultsPage } from './jobs.service.js';

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

/** Which results to send. */
interface Range {
  limit: number;
  after: number;
  /** Whether entries after a pending video are sent. */
  pastPending: boolean;
}

type ReadPart = (limit: number, after: number) => Promise<JobResultsPage>;

/** Sends the stored results of a job, read in small parts and no faster than the reader takes them. */
@Injectable()
export class ResultsResponse {
  constructor(
    private readonly jobs: JobsService,
    private readonly memory: ResponseMemory,
    private readonly environment: Environment,
  ) {}

  /**
   * Sends a page as JSON, or all entries as NDJSON when the request accepts it. After the first byte an error destroys
   * the connection.
   *
   * @throws JobNotFoundError, ResultsExpiredError; ServiceUnavailableError when too much memory waits for slow readers
   */
  async send(
    organizationId: string,
    jobId: string,
    { limit, after = 0 }: ResultsQueryDto,
    request: Request,
    response: Response,
  ): Promise<void> {
    this.memory.refuseWhenFull(organizationId);
    const type = request.accepts(['application/json', NDJSON]) === NDJSON ? NDJSON : 'application/json';
    const range =
      type === NDJSON
        ? // Pages with entries after a pending video could not be continued.
          { limit: limit ?? Infinity, after, pastPending: limit === undefined }
        : { limit: Math.min(limit ?? PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX), after, pastPending: false };
    const read: ReadPart = (missing, position) => {
      const part = { limit: Math.min(missing, ENTRIES_PER_READ), after: position, pastPending: range.pastPending };
      return this.jobs.results(organizationId, jobId, part);
    };
    const first = await read(range.limit, range.after);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    response.setHeader('Content-Type', `${type}; charset=utf-8`);
    const chunks = this.chunks(response, organizationId, FORMATS[type], range, first, read);
    await writeResponse(response, chunks, encodingFor(request), new HeldTexts(this.memory, organizationId));
  }

  /**
   * Reads on from the first part. The texts of a part count as held until the next one is read. A reader that has not taken
   * them within twice the deadline of a call is disconnected.
   */
  private async *chunks(
    response: Response,
    organizationId: string,
    format: Format,
    range: Range,
    first: JobResultsPage,
    read: ReadPart,
  ): AsyncGenerator<Chunk> {
    yield [format.head];
    let separator = '';
    /** The position up to which every entry was sent. */
    let complete = range.after;
    let part = first;
    for (let missing = range.limit; ;) {
      const held = new HeldTexts(this.memory, organizationId);
      const timer = setTimeout(() => response.destroy(), 2 * this.environment.REQUEST_DEADLINE_SECONDS * 1000);
      try {
        for (const { text } of part.entries) held.add(text.deflated);
        for (const { position, text } of part.entries) {
          yield [separator + format.before(position), text, format.after];
          separator = format.separator;
          if (position === complete + 1) complete = position;
        }
      } finally {
        clearTimeout(timer);
        held.close();
      }
      missing -= part.entries.length;
      // A part without entries ends at the end of the job, or before a video that is not decided.
      if (missing === 0 || part.next === null || part.entries.length === 0) break;
      part = await read(missing, part.next);
    }
    // Of a job that was not finished at first, a video that was pending when it was passed may be decided now.
    const next = range.pastPending && !first.isFinal ? complete : part.next;
    yield [format.tail({ job: part.job, next })];
  }
}

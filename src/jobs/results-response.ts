import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { inflate, type SentText } from '../transcripts/cache/transcript-text.js';
import { BufferedTexts, ResponseMemory } from '../transcripts/response/response-memory.js';
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
  /** @param last what was read last: its `next` and its job are those of the response */
  tail: (last: JobResultsPage) => string;
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
export interface WantedResults {
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
    const limit = type === NDJSON ? (wanted.limit ?? Infinity) : pageSize(wanted.limit);
    const encoding = encodingFor(request);
    const first = await this.read({ ...wanted, limit });
    response.vary('Accept-Encoding');
    response.vary('Accept');
    response.setHeader('Content-Type', `${type}; charset=utf-8`);
    const texts = new BufferedTexts(this.memory);
    try {
      const body = this.body(FORMATS[type], { ...wanted, limit }, first, encoding, texts);
      await writeResponse(response, body, encoding);
    } finally {
      texts.close();
    }
  }

  private async *body(
    format: Format,
    wanted: WantedResults & { limit: number },
    first: JobResultsPage,
    encoding: 'gzip' | 'identity',
    texts: BufferedTexts,
  ): AsyncGenerator<Chunk> {
    yield [format.head];
    let page = first;
    let separator = '';
    for (let missing = wanted.limit; ;) {
      for (const { text } of page.entries) texts.add(text.bytes, 'passing');
      for (const { position, text } of page.entries) {
        yield [separator + format.before(position), encoding === 'gzip' ? text : await inflated(text), format.after];
        separator = format.separator;
      }
      for (const { text } of page.entries) texts.release(text.bytes);
      missing -= page.entries.length;
      // A part without entries ends at the end of the job, or before the first video that is not decided.
      if (missing === 0 || page.next === null || page.entries.length === 0) break;
      page = await this.read({ ...wanted, limit: missing, after: page.next });
    }
    yield [format.tail(page)];
  }

  private read({ organizationId, jobId, limit, after }: WantedResults & { limit: number }): Promise<JobResultsPage> {
    const count = Math.min(limit, this.memory.isFull ? 1 : ENTRIES_PER_READ);
    return this.jobs.results(organizationId, jobId, { limit: count, ...(after !== undefined && { after }) });
  }
}

async function inflated({ bytes, jsonBytes, crc32 }: SentText): Promise<SentText> {
  return { bytes: await inflate(bytes, jsonBytes), jsonBytes, crc32 };
}

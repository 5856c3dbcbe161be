import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { requestContext } from '../http/server/request-context.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../http/routes/validation.js';
import type { Chunk } from '../transcripts/formats/json.js';
import { HeldTexts, ResponseMemory } from '../transcripts/delivery/response-memory.js';
import { acceptedType, ResponseWriter } from '../transcripts/response/response-writer.js';
import { NDJSON } from '../transcripts/response/transcripts-response.js';
import type { JobSummaryDto } from './dto/job.dto.js';
import type { ResultsQueryDto } from './dto/jobs-request.dto.js';
import type { ResultsPart, ResultsRequest } from './job-store.js';
import type { JobVariant } from './job-variants.js';

/** Entries that are read from the database at a time, which is what a slow reader holds in memory. */
const ENTRIES_PER_READ = 20;

type Part = ResultsPart<{ summary: JobSummaryDto }>;

/** Reads a part of the results of a job or a subscription. */
export type ReadResults = (page: ResultsRequest) => Promise<Part>;

/** Sends the stored results of a job or a subscription, read in small parts and no faster than the reader takes them. */
@Injectable()
export class ResultsResponse {
  constructor(
    private readonly memory: ResponseMemory,
    private readonly writer: ResponseWriter,
  ) {}

  /**
   * Sends a page as JSON, or all entries as NDJSON when the request accepts it. After the first byte an error destroys
   * the connection.
   *
   * @param variant what the results belong to: the name of the last field
   * @throws ServiceUnavailableError when too much memory waits for slow readers, and what the first read throws
   */
  async send(
    variant: JobVariant,
    read: ReadResults,
    query: ResultsQueryDto,
    request: Request,
    response: Response,
  ): Promise<void> {
    const type = acceptedType(request, ['application/json', NDJSON]);
    const { id } = requestContext(request).caller.organization;
    const page = { ...query, limit: Math.min(query.limit ?? PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX) };
    const chunks =
      type === NDJSON
        ? await this.lines(variant, read, id, query)
        : pageJson(variant, await this.parts(read, id, page));
    await this.writer.send(request, response, type, chunks);
  }

  /**
   * The lines of NDJSON, with all entries by default, also for a reader of another transport.
   *
   * @throws as `send`
   */
  async lines(
    variant: JobVariant,
    read: ReadResults,
    organizationId: string,
    query: ResultsQueryDto,
  ): Promise<AsyncGenerator<Chunk>> {
    return ndjson(variant, await this.parts(read, organizationId, query));
  }

  /** Reads the first part, before which the response can be refused. */
  private async parts(
    read: ReadResults,
    organizationId: string,
    { limit = Infinity, after }: ResultsQueryDto,
  ): Promise<AsyncGenerator<Part>> {
    this.memory.refuseWhenFull(organizationId);
    const first = await read({ limit: Math.min(limit, ENTRIES_PER_READ), after });
    return this.readOn(first, read, organizationId, limit);
  }

  /** Reads on from the first part. The texts of a part count as held until the next one is read. */
  private async *readOn(first: Part, read: ReadResults, organizationId: string, limit: number): AsyncGenerator<Part> {
    for (let part = first, missing = limit; ;) {
      const held = new HeldTexts(this.memory, organizationId);
      try {
        for (const { text } of part.entries) held.add(text.deflated);
        yield part;
      } finally {
        held.close();
      }
      missing -= part.entries.length;
      if (missing === 0 || part.isEnd || part.entries.length === 0) return;
      part = await read({ limit: Math.min(missing, ENTRIES_PER_READ), after: part.next });
    }
  }
}

async function* pageJson(variant: JobVariant, parts: AsyncIterable<Part>): AsyncGenerator<Chunk> {
  let separator = '';
  let end = '';
  yield ['{"results":['];
  for await (const part of parts) {
    for (const { text } of part.entries) {
      yield [separator, text];
      separator = ',';
    }
    end = `],"next":${nextOf(part)},"${variant}":${JSON.stringify(part.owner)}}`;
  }
  yield [end];
}

async function* ndjson(variant: JobVariant, parts: AsyncIterable<Part>): AsyncGenerator<Chunk> {
  let summary = {};
  for await (const part of parts) {
    for (const { sequence, position, text } of part.entries) {
      const place = variant === 'job' ? `"position":${position},` : '';
      yield [`{"type":"result","cursor":${sequence},${place}"result":`, text, '}\n'];
    }
    const { owner } = part;
    summary = { type: 'summary', summary: owner.summary, next: nextOf(part), [variant]: owner };
  }
  yield [`${JSON.stringify(summary)}\n`];
}

/** Null when no entry can follow. */
function nextOf({ isEnd, next }: Part): number | null {
  return isEnd ? null : next;
}

import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { HeldTexts, ResponseMemory } from '../transcripts/response-memory.js';
import type { Chunk } from '../transcripts/formats/json.js';
import { writeResponse } from '../transcripts/response/response-writer.js';
import { acceptedType, encodingFor, NDJSON, withCharset } from '../transcripts/response/transcripts-response.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../http/routes/validation.js';
import type { JobSummaryDto } from './dto/job.dto.js';
import type { ResultsQueryDto } from './dto/jobs-request.dto.js';
import type { ResultsPart, ResultsRequest, StoredEntry } from './job-store.js';
import type { JobVariant } from './job-variants.js';

/** Entries that are read from the database at a time, which is what a slow reader holds in memory. */
const ENTRIES_PER_READ = 20;

/** Reads a part of the results of a job or a subscription. */
export type ReadResults = (page: ResultsRequest) => Promise<ResultsPart<Owner>>;

interface Owner {
  summary: JobSummaryDto;
}

/** The JSON around the entries of a response. */
interface Format {
  head: string;
  separator: string;
  before: (entry: StoredEntry, variant: JobVariant) => string;
  after: string;
  tail: (next: number | null, variant: JobVariant, owner: Owner) => string;
}

const FORMATS = {
  'application/json': {
    head: '{"results":[',
    separator: ',',
    before: () => '',
    after: '',
    tail: (next, variant, owner) => `],"next":${next},"${variant}":${JSON.stringify(owner)}}`,
  },
  [NDJSON]: {
    head: '',
    separator: '',
    before: ({ sequence, position }, variant) =>
      `{"type":"result","cursor":${sequence},${variant === 'job' ? `"position":${position},` : ''}"result":`,
    after: '}\n',
    tail: (next, variant, owner) =>
      `${JSON.stringify({ type: 'summary', summary: owner.summary, next, [variant]: owner })}\n`,
  },
} as const satisfies Record<string, Format>;

interface Target {
  organizationId: string;
  variant: JobVariant;
  format: Format;
}

/** Sends the stored results of a job or a subscription, read in small parts and no faster than the reader takes them. */
@Injectable()
export class ResultsResponse {
  constructor(private readonly memory: ResponseMemory) {}

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
    organizationId: string,
    { limit, after }: ResultsQueryDto,
    request: Request,
    response: Response,
  ): Promise<void> {
    const type = acceptedType(request, ['application/json', NDJSON]);
    const count = type === NDJSON ? (limit ?? Infinity) : Math.min(limit ?? PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX);
    const target = { organizationId, variant, format: FORMATS[type] };
    const chunks = await this.begin(target, read, count, after);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    response.setHeader('Content-Type', withCharset(type));
    await writeResponse(response, chunks, encodingFor(request), new HeldTexts(this.memory, organizationId));
  }

  /**
   * The lines of NDJSON, with all entries by default, for a reader of another transport.
   *
   * @throws as `send`
   */
  lines(
    variant: JobVariant,
    read: ReadResults,
    organizationId: string,
    { limit = Infinity, after }: ResultsQueryDto,
  ): Promise<AsyncGenerator<Chunk>> {
    return this.begin({ organizationId, variant, format: FORMATS[NDJSON] }, read, limit, after);
  }

  /** Reads the first part, before which the response can be refused. */
  private async begin(
    target: Target,
    read: ReadResults,
    count: number,
    after: number | undefined,
  ): Promise<AsyncGenerator<Chunk>> {
    this.memory.refuseWhenFull(target.organizationId);
    const readPart: ReadResults = ({ limit, after }) => read({ limit: Math.min(limit, ENTRIES_PER_READ), after });
    return this.chunks(target, count, await readPart({ limit: count, after }), readPart);
  }

  /** Reads on from the first part. The texts of a part count as held until the next one is read. */
  private async *chunks(
    { organizationId, variant, format }: Target,
    count: number,
    first: ResultsPart<Owner>,
    read: ReadResults,
  ): AsyncGenerator<Chunk> {
    yield [format.head];
    let separator = '';
    let part = first;
    for (let missing = count; ;) {
      const held = new HeldTexts(this.memory, organizationId);
      try {
        for (const { text } of part.entries) held.add(text.deflated);
        for (const entry of part.entries) {
          yield [separator + format.before(entry, variant), entry.text, format.after];
          separator = format.separator;
        }
      } finally {
        held.close();
      }
      missing -= part.entries.length;
      if (missing === 0 || part.isEnd || part.entries.length === 0) break;
      part = await read({ limit: missing, after: part.next });
    }
    yield [format.tail(part.isEnd ? null : part.next, variant, part.owner)];
  }
}

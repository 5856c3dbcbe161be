import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Environment } from '../config/environment.js';
import { HeldTexts, ResponseMemory } from '../transcripts/response-memory.js';
import type { Chunk } from '../transcripts/formats/json.js';
import { writeResponse } from '../transcripts/response/response-writer.js';
import { acceptedType, encodingFor, NDJSON, withCharset } from '../transcripts/response/transcripts-response.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../http/validation.js';
import type { JobSummaryDto } from './dto/job.dto.js';
import type { ResultsQueryDto } from './dto/jobs-request.dto.js';
import type { JobVariant } from './job-variants.js';
import type { StoredEntry } from './job-table.js';

/** Entries that are read from the database at a time, which is what a slow reader holds in memory. */
const ENTRIES_PER_READ = 20;

/** A part of the results, with what they belong to. */
export type ResultsPart<Variant extends JobVariant> = Record<Variant, { summary: JobSummaryDto }> & {
  entries: readonly StoredEntry[];
  /** The `after` of the next part; null when there can be no more. */
  next: number | null;
};

/** Reads up to `limit` of the results after a sequence, by default from the first one on. */
export type ReadPart<Variant extends JobVariant> = (limit: number, after?: number) => Promise<ResultsPart<Variant>>;

/** The JSON around the entries of a response. */
interface Format {
  head: string;
  separator: string;
  before: (entry: StoredEntry, variant: JobVariant) => string;
  after: string;
  tail: (next: number | null, variant: JobVariant, state: { summary: JobSummaryDto }) => string;
}

const FORMATS = {
  'application/json': {
    head: '{"results":[',
    separator: ',',
    before: () => '',
    after: '',
    tail: (next, variant, state) => `],"next":${next},"${variant}":${JSON.stringify(state)}}`,
  },
  [NDJSON]: {
    head: '',
    separator: '',
    before: ({ sequence, position }, variant) =>
      `{"type":"result","cursor":${sequence},${variant === 'job' ? `"position":${position},` : ''}"result":`,
    after: '}\n',
    tail: (next, variant, state) =>
      `${JSON.stringify({ type: 'summary', summary: state.summary, next, [variant]: state })}\n`,
  },
} as const satisfies Record<string, Format>;

/** What is sent, and to whom. */
interface Target<Variant extends JobVariant> {
  /** Ends a response that its reader does not take. */
  disconnect: () => void;
  organizationId: string;
  variant: Variant;
  format: Format;
}

/** Sends the stored results of a job or a subscription, read in small parts and no faster than the reader takes them. */
@Injectable()
export class ResultsResponse {
  constructor(
    private readonly memory: ResponseMemory,
    private readonly environment: Environment,
  ) {}

  /**
   * Sends a page as JSON, or all entries as NDJSON when the request accepts it. After the first byte an error destroys
   * the connection.
   *
   * @param variant what the results belong to: the name of the last field
   * @throws ServiceUnavailableError when too much memory waits for slow readers, and what the first read throws
   */
  async send<Variant extends JobVariant>(
    variant: Variant,
    read: ReadPart<Variant>,
    organizationId: string,
    { limit, after }: ResultsQueryDto,
    request: Request,
    response: Response,
  ): Promise<void> {
    const type = acceptedType(request, ['application/json', NDJSON]);
    const count = type === NDJSON ? (limit ?? Infinity) : Math.min(limit ?? PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX);
    const disconnect = (): void => void response.destroy();
    const target = { disconnect, organizationId, variant, format: FORMATS[type] };
    const chunks = await this.begin(target, read, count, after);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    response.setHeader('Content-Type', withCharset(type));
    await writeResponse(response, chunks, encodingFor(request), new HeldTexts(this.memory, organizationId));
  }

  /**
   * The lines of NDJSON, with all entries by default, for a reader of another transport.
   *
   * @param disconnect ends a response that its reader does not take
   * @throws as `send`
   */
  lines<Variant extends JobVariant>(
    variant: Variant,
    read: ReadPart<Variant>,
    organizationId: string,
    { limit = Infinity, after }: ResultsQueryDto,
    disconnect: () => void,
  ): Promise<AsyncGenerator<Chunk>> {
    return this.begin({ disconnect, organizationId, variant, format: FORMATS[NDJSON] }, read, limit, after);
  }

  /** Reads the first part, before which the response can be refused. */
  private async begin<Variant extends JobVariant>(
    target: Target<Variant>,
    read: ReadPart<Variant>,
    count: number,
    after: number | undefined,
  ): Promise<AsyncGenerator<Chunk>> {
    this.memory.refuseWhenFull(target.organizationId);
    const readPart: ReadPart<Variant> = (missing, from) => read(Math.min(missing, ENTRIES_PER_READ), from);
    return this.chunks(target, count, await readPart(count, after), readPart);
  }

  /**
   * Reads on from the first part. The texts of a part count as held until the next one is read. A reader that has not taken
   * them within twice the deadline of a call is disconnected.
   */
  private async *chunks<Variant extends JobVariant>(
    { disconnect, organizationId, variant, format }: Target<Variant>,
    count: number,
    first: ResultsPart<Variant>,
    read: ReadPart<Variant>,
  ): AsyncGenerator<Chunk> {
    yield [format.head];
    let separator = '';
    let part = first;
    for (let missing = count; ;) {
      const held = new HeldTexts(this.memory, organizationId);
      const timer = setTimeout(disconnect, 2 * this.environment.REQUEST_DEADLINE_SECONDS * 1000);
      try {
        for (const { text } of part.entries) held.add(text.deflated);
        for (const entry of part.entries) {
          yield [separator + format.before(entry, variant), entry.text, format.after];
          separator = format.separator;
        }
      } finally {
        clearTimeout(timer);
        held.close();
      }
      missing -= part.entries.length;
      if (missing === 0 || part.next === null || part.entries.length === 0) break;
      part = await read(missing, part.next);
    }
    yield [format.tail(part.next, variant, part[variant])];
  }
}

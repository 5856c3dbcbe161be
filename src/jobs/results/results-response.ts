import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { invalidField } from '../../domain/errors.js';
import type { Channel } from '../../domain/transcript.js';
import { requestContext } from '../../http/server/request-context.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../../http/routes/validation.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { documentLines, documentsOf } from '../../transcripts/formats/documents.js';
import { readEntry, type Chunk } from '../../transcripts/formats/json.js';
import { channelLine, entrySection } from '../../transcripts/formats/markdown.js';
import { HeldTexts, ResponseMemory } from '../../transcripts/delivery/response-memory.js';
import {
  requireDocumentsAccepted,
  acceptedType,
  ResponseWriter,
  MARKDOWN,
  NDJSON,
} from '../../transcripts/response/response-writer.js';
import type { JobSummaryDto } from '../dto/job.dto.js';
import type { ResultsQueryDto } from '../dto/jobs-request.dto.js';
import type { JobVariant } from '../job-variants.js';
import type { ResultsPart, ResultsRequest } from './results-part.js';

/** Entries that are read from the database at a time, which is what a slow reader holds in memory. */
const ENTRIES_PER_READ = 20;

/** What results belong to. The feed is that of an organization. */
export type ResultsOwner = JobVariant | 'feed';

interface Part extends ResultsPart {
  /** Of a job or a subscription. */
  owner?: { summary: JobSummaryDto; channel: Channel | null };
  /** Whether no entry can follow. */
  isEnd?: boolean;
}

export type ReadResults = (page: ResultsRequest) => Promise<Part>;

type Query = Partial<ResultsQueryDto>;

/** Sends stored results, read in small parts and no faster than the reader takes them. */
@Injectable()
export class ResultsResponse {
  constructor(
    private readonly memory: ResponseMemory,
    private readonly writer: ResponseWriter,
  ) {}

  /**
   * Sends a page as JSON or Markdown, or all entries as NDJSON or documents, as the request accepts it. After the first byte an error destroys
   * the connection.
   *
   * @param of what the results belong to: the name of the last field
   * @throws ServiceUnavailableError when too much memory waits for slow readers, and what the first read throws
   */
  async send(of: ResultsOwner, read: ReadResults, query: Query, request: Request, response: Response): Promise<void> {
    if (query.as !== undefined) requireDocumentsAccepted(request);
    const type = query.as !== undefined ? NDJSON : acceptedType(request, ['application/json', NDJSON, MARKDOWN]);
    const { id } = requestContext(request).caller.organization;
    const page = { ...query, limit: Math.min(query.limit ?? PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX) };
    const chunks = {
      'application/json': async () => pageJson(of, await this.parts(read, id, page, true)),
      [NDJSON]: () => this.lines(of, read, id, query),
      [MARKDOWN]: async () => pageMarkdown(await this.parts(read, id, page, true)),
    };
    await this.writer.send(request, response, type, await chunks[type]());
  }

  /**
   * The lines of NDJSON, with all entries by default, also for a reader of another transport.
   *
   * @throws as `send`
   */
  async lines(
    of: ResultsOwner,
    read: ReadResults,
    organizationId: string,
    query: Query,
  ): Promise<AsyncGenerator<Chunk | string>> {
    const parts = await this.parts(read, organizationId, query, false);
    return query.as === undefined ? ndjson(of, parts) : documents(parts, query);
  }

  /** Reads the first part, before which the response can be refused. */
  private async parts(
    read: ReadResults,
    organizationId: string,
    { limit = Infinity, after, as, chunkSeconds }: Query,
    isPage: boolean,
  ): Promise<AsyncGenerator<Part>> {
    if (as === undefined && chunkSeconds !== undefined)
      throw invalidField('chunkSeconds', 'chunkSeconds requires as=documents.');
    this.memory.refuseWhenFull(organizationId);
    const first = await read({ limit: Math.min(limit, ENTRIES_PER_READ), after });
    return this.readOn(first, read, organizationId, limit, isPage);
  }

  /** Reads on from the first part. The texts of a part count as held until the next one is read. */
  private async *readOn(
    first: Part,
    read: ReadResults,
    organizationId: string,
    limit: number,
    isPage: boolean,
  ): AsyncGenerator<Part> {
    for (let part = first, missing = limit; ;) {
      const held = new HeldTexts(this.memory, organizationId);
      try {
        for (const { text } of part.entries) held.add(text.deflated);
        yield part;
      } finally {
        held.close();
      }
      missing -= part.entries.length;
      if (missing === 0 || !part.hasMore || (isPage && part.endsPage)) return;
      part = await read({ limit: Math.min(missing, ENTRIES_PER_READ), after: part.next });
    }
  }
}

const fieldsOf = (facts: object): string => JSON.stringify(facts).slice(1, -1);

async function* pageJson(of: ResultsOwner, parts: AsyncIterable<Part>): AsyncGenerator<Chunk | string> {
  let separator = '';
  let end = {};
  yield ['{"results":['];
  for await (const part of parts) {
    for (const { text, facts } of part.entries) {
      if (of === 'feed') yield `${separator}{${fieldsOf(facts)},${(await inflate(text)).toString('utf8', 1)}`;
      else yield [separator, text];
      separator = ',';
    }
    end = endOf(of, part);
  }
  yield [`],${fieldsOf(end)}}`];
}

async function* ndjson(of: ResultsOwner, parts: AsyncIterable<Part>): AsyncGenerator<Chunk> {
  let summary = {};
  for await (const part of parts) {
    for (const { cursor, facts, text } of part.entries)
      yield [`{${fieldsOf({ type: 'result', cursor, ...facts })},"result":`, text, '}\n'];
    summary = { type: 'summary', ...(part.owner && { summary: part.owner.summary }), ...endOf(of, part) };
  }
  yield [`${JSON.stringify(summary)}\n`];
}

async function* documents(parts: AsyncIterable<Part>, form: Query): AsyncGenerator<string> {
  for await (const { entries, owner } of parts)
    for (const { cursor, facts, text } of entries) {
      const channel = facts.channel ?? owner?.channel;
      const lines = await documentsOf(await readEntry(await inflate(text)), { ...form, channel });
      yield documentLines(lines, cursor);
    }
}

async function* pageMarkdown(parts: AsyncIterable<Part>): AsyncGenerator<string> {
  let separator = '';
  let end = null;
  for await (const part of parts) {
    for (const { text, facts } of part.entries) {
      const source = facts.channel ? channelLine(facts.channel) : '';
      yield separator + (await entrySection(await readEntry(await inflate(text)), undefined, source));
      separator = '\n';
    }
    end = nextOf(part);
  }
  yield `${separator}${end === null ? 'This is the end.' : `The next entries: \`after=${end}\``}\n`;
}

function endOf(of: ResultsOwner, part: Part): object {
  return { next: nextOf(part), ...(of !== 'feed' && { [of]: part.owner }) };
}

/** Null when no entry can follow. */
function nextOf({ isEnd, next }: Part): string | null {
  return isEnd === true ? null : next;
}

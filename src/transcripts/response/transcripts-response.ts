import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { VideoFailedError } from '../../domain/errors.js';
import { setQuotaHeaders } from '../../http/routes/limit-headers.js';
import { requestContext } from '../../http/server/request-context.js';
import type { PlaylistQueryDto } from '../dto/transcripts-query.dto.js';
import { forDocuments, serializeDocuments } from '../formats/documents.js';
import { entryJson, serializeJson, serializeNdjson } from '../formats/json.js';
import { markdownDocument } from '../formats/markdown.js';
import { FORMAT_MEDIA_TYPES, formatEntry } from '../formats/transcript-formats.js';
import type { CallPlan, TranscriptsRequest } from '../call-plan.js';
import type { Entry, SucceededEntry, TranscriptsEvent } from '../delivery/transcript-events.js';
import { TranscriptsService } from '../transcripts.service.js';
import { acceptedType, MARKDOWN, NDJSON, requireDocumentsAccepted, ResponseWriter } from './response-writer.js';

/** The content types of a response about many videos. Of equally accepted ones the first is sent. */
const LIST_TYPES = ['application/json', NDJSON, MARKDOWN] as const;

export const ENTRY_MEDIA_TYPES = { json: 'application/json', ...FORMAT_MEDIA_TYPES } as const;
export type EntryFormat = keyof typeof ENTRY_MEDIA_TYPES;
export const ENTRY_FORMATS = Object.keys(ENTRY_MEDIA_TYPES) as EntryFormat[];

/** Responds to an HTTP request with the transcripts of the videos that a source lists. */
@Injectable()
export class TranscriptsResponse {
  constructor(
    private readonly transcripts: TranscriptsService,
    private readonly writer: ResponseWriter,
  ) {}

  /**
   * Sends the entries of all videos, as JSON or Markdown in the order of the list, or as NDJSON or documents in the order in
   * which they finish.
   *
   * @throws the errors that refuse the call, before anything is written
   */
  async send(
    { as, ...wanted }: TranscriptsRequest & Pick<PlaylistQueryDto, 'as'>,
    request: Request,
    response: Response,
  ): Promise<void> {
    if (as !== undefined) return this.sendDocuments(wanted, request, response);
    const type = acceptedType(request, LIST_TYPES);
    const delivery = await this.transcripts.start(wanted, requestContext(request));
    setPlanHeaders(response, delivery.plan);
    const chunks = {
      'application/json': () => serializeJson(delivery.batches('listed')),
      [NDJSON]: () => serializeNdjson(delivery.batches('as-finished')),
      [MARKDOWN]: () => markdownDocument(delivery.events('listed'), delivery.plan),
    };
    await this.writer.send(request, response, type, chunks[type]());
  }

  private async sendDocuments(wanted: TranscriptsRequest, request: Request, response: Response): Promise<void> {
    requireDocumentsAccepted(request);
    const delivery = await this.transcripts.start(forDocuments(wanted), requestContext(request));
    setPlanHeaders(response, delivery.plan);
    await this.writer.send(request, response, NDJSON, serializeDocuments(delivery.events('as-finished'), wanted));
  }

  /**
   * Sends the entry of a source's only video by itself.
   *
   * @param format by default the one that the request accepts
   * @throws VideoFailedError when the video has no transcript, and the errors that refuse the call
   */
  async sendEntry(
    wanted: TranscriptsRequest,
    request: Request,
    response: Response,
    format: EntryFormat = acceptedFormat(request),
  ): Promise<void> {
    const delivery = await this.transcripts.start(wanted, requestContext(request));
    const entry = await onlyEntry(delivery.events('listed'));
    setPlanHeaders(response, delivery.plan);
    const chunk = format === 'json' ? entryJson('', entry, '') : await formatEntry(format, entry, delivery.plan);
    await this.writer.send(request, response, ENTRY_MEDIA_TYPES[format], [chunk]);
  }
}

function acceptedFormat(request: Request): EntryFormat {
  const preferred = acceptedType(request, Object.values(ENTRY_MEDIA_TYPES));
  return ENTRY_FORMATS.find((format) => ENTRY_MEDIA_TYPES[format] === preferred) ?? 'json';
}

/** Marks a response whose list the platform refused: it has the list of `listedAt`. */
export function setListAgeHeader(response: Response, { listedAt }: { listedAt?: string | undefined }): void {
  if (listedAt !== undefined) response.setHeader('Warning', '110 - "Response is Stale"');
}

function setPlanHeaders(response: Response, { quota, header }: CallPlan): void {
  setQuotaHeaders(response, quota);
  if (header.type !== 'videos') setListAgeHeader(response, header);
}

/**
 * The entry of a call about one video, after the call was settled.
 *
 * @throws VideoFailedError when the video has no transcript
 */
export async function onlyEntry(events: AsyncIterable<TranscriptsEvent>): Promise<SucceededEntry> {
  let entry: Entry | undefined;
  for await (const event of events) if (event.type === 'result') ({ entry } = event);
  if (!entry) throw new Error('The call has no video.');
  if (!entry.ok) throw new VideoFailedError(entry.error, entry.metadata.captionTracks);
  return entry;
}

import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { VideoFailedError } from '../../domain/errors.js';
import { setQuotaHeaders } from '../../http/limit-headers.js';
import { requestContext, type RequestContext } from '../../http/request-context.js';
import { inflate } from '../cache/transcript-text.js';
import { markdownDocument, textChunks } from '../formats/markdown-document.js';
import { FORMAT_MEDIA_TYPES, formatTranscript, type TranscriptFormat } from '../formats/transcript-formats.js';
import { payerOf } from '../quota-reservations.js';
import type { Delivery } from '../transcript-delivery.js';
import type { EntryError, SucceededEntry, TranscriptsEvent } from '../transcript-events.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import type { CallPlan, TranscriptsRequest } from '../transcript-planner.js';
import { TranscriptsService } from '../transcripts.service.js';
import { RepeatedBodies, type RepeatedBody } from './repeated-bodies.js';
import { HeldTexts, ResponseMemory } from './response-memory.js';
import { serializeEntry, serializeJson, serializeNdjson, writeBody, writeResponse } from './response-writer.js';

export const NDJSON = 'application/x-ndjson';
export const MARKDOWN = 'text/markdown';

/** The content types of a response about many videos. Of equally accepted ones the first is sent. */
const LIST_TYPES = ['application/json', NDJSON, MARKDOWN] as const;
type ListType = (typeof LIST_TYPES)[number];

/** The content type of each format of one entry. */
export const ENTRY_MEDIA_TYPES = { json: 'application/json', ...FORMAT_MEDIA_TYPES } as const;
export type EntryFormat = keyof typeof ENTRY_MEDIA_TYPES;
export const ENTRY_FORMATS = Object.keys(ENTRY_MEDIA_TYPES) as EntryFormat[];

/** Responds to an HTTP request with the transcripts of the videos that a source lists. */
@Injectable()
export class TranscriptsResponse {
  constructor(
    private readonly transcripts: TranscriptsService,
    private readonly bodies: RepeatedBodies,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
  ) {}

  /**
   * Sends the entries of all videos, as JSON or Markdown in the order of the list, or as NDJSON in the order in which they
   * finish.
   *
   * @throws the errors that refuse the call, before anything is written
   */
  async send(wanted: TranscriptsRequest, request: Request, response: Response): Promise<void> {
    const encoding = encodingFor(request);
    const type = listType(request);
    const form = type === MARKDOWN ? undefined : `${type} ${encoding} ${wanted.languages?.join() ?? ''}`;
    const plan = await this.prepare({ ...wanted, form }, request);
    setEntryHeaders(response, plan);
    response.setHeader('Content-Type', `${type}; charset=utf-8`);
    if (plan.body) return this.repeat(plan.body, plan, request, response);
    const recording = form === undefined ? undefined : this.bodies.record(plan.list, form, plan.order);
    const events = this.deliver(plan, request).events(type === NDJSON ? 'as-finished' : 'listed');
    const chunks = {
      'application/json': () => serializeJson(events),
      [NDJSON]: () => serializeNdjson(events),
      [MARKDOWN]: () => textChunks(markdownDocument(events, plan.languages), encoding),
    };
    await writeResponse(response, chunks[type](), encoding, recording);
  }

  /** Sends a body again, and counts its entries. */
  private async repeat(
    { bytes, outcomes }: RepeatedBody,
    { call }: CallPlan,
    request: Request,
    response: Response,
  ): Promise<void> {
    call.finish();
    const succeeded = outcomes.filter((outcome) => outcome === 'cached').length;
    const failed = outcomes.length - succeeded;
    requestContext(request).log['counts'] = {
      total: outcomes.length,
      succeeded,
      failed,
      cached: succeeded,
      fetched: 0,
    };
    for (const outcome of outcomes) this.metrics.countEntries(outcome, 1);
    const held = new HeldTexts(this.memory);
    held.add(bytes);
    try {
      await writeBody(response, bytes, encodingFor(request));
    } finally {
      held.close();
    }
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
    const plan = await this.prepare(wanted, request);
    const encoding = encodingFor(request);
    const events = this.deliver(plan, request).events('listed');
    const entry = await onlyEntry(events);
    try {
      setEntryHeaders(response, plan);
      response.setHeader('Content-Type', `${ENTRY_MEDIA_TYPES[format]}; charset=utf-8`);
      const chunks =
        format === 'json'
          ? serializeEntry(entry, events)
          : textChunks(formatEntry(format, entry, events, plan.languages), encoding);
      await writeResponse(response, chunks, encoding);
    } finally {
      // The reader can disconnect before the rest of the events is read: only closed events release the text.
      await events.return();
    }
  }

  /** Plans the call of a request. @throws the errors that refuse the call */
  async prepare(wanted: TranscriptsRequest, request: Request): Promise<CallPlan> {
    const context = requestContext(request);
    const plan = await this.transcripts.prepare(wanted, payerOf(context), context);
    logPlan(context.log, plan);
    return plan;
  }

  /** Starts the delivery of a plan and adds its counts to the log line of the request. */
  deliver(plan: CallPlan, request: Request): Delivery {
    const delivery = this.transcripts.deliver(plan);
    requestContext(request).log['counts'] = delivery.summary;
    return delivery;
  }
}

/** The content type that the caller prefers: JSON unless it names another one. */
function listType(request: Request): ListType {
  const preferred = request.accepts([...LIST_TYPES]);
  return LIST_TYPES.find((type) => type === preferred) ?? 'application/json';
}

function acceptedFormat(request: Request): EntryFormat {
  const preferred = request.accepts(Object.values(ENTRY_MEDIA_TYPES));
  return ENTRY_FORMATS.find((format) => ENTRY_MEDIA_TYPES[format] === preferred) ?? 'json';
}

/** The text of an entry. Its end is written when the events have ended, which is after the settlement. */
async function* formatEntry(
  format: TranscriptFormat,
  entry: SucceededEntry,
  rest: AsyncIterable<TranscriptsEvent>,
  languages: readonly string[],
): AsyncGenerator<string> {
  const { videoId, metadata, transcript } = entry;
  yield* formatTranscript(format, { videoId, metadata, transcript: await inflate(transcript) }, languages);
  for await (const event of rest) if (event.type === 'summary') yield '';
}

/** The encoding of a response that may be large. */
export function encodingFor(request: Request): 'gzip' | 'identity' {
  return request.acceptsEncodings('gzip', 'identity') === 'gzip' ? 'gzip' : 'identity';
}

function setEntryHeaders(response: Response, { quota }: CallPlan): void {
  setQuotaHeaders(response, quota);
  response.vary('Accept-Encoding');
  response.vary('Accept');
}

/**
 * Reads the events of a call about one video up to its entry.
 *
 * @throws VideoFailedError when the video has no transcript, after the call was settled
 */
export async function onlyEntry(events: AsyncGenerator<TranscriptsEvent, void>): Promise<SucceededEntry> {
  let failure: EntryError | undefined;
  for (let next = await events.next(); next.done !== true; next = await events.next()) {
    if (next.value.type !== 'result') continue;
    const { entry } = next.value;
    if (entry.ok) return entry;
    failure = entry.error;
  }
  if (!failure) throw new Error('The call has no video.');
  throw new VideoFailedError(failure);
}

/** Adds what a call is about to its log line. */
export function logPlan(log: RequestContext['log'], { header, resource, order }: CallPlan): void {
  if (header.type === 'channel') log['channelId'] = resource;
  else if (header.type === 'playlist') log['playlistId'] = resource;
  else if (resource === 'videos') log['videos'] = order.length;
  else log['videoId'] = resource;
}

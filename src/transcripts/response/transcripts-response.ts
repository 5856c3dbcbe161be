import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { setQuotaHeaders } from '../../http/limit-headers.js';
import { requestContext, type RequestContext } from '../../http/request-context.js';
import { responseEnd } from '../../http/response-end.js';
import type { TextForm } from '../cache/transcript-text.js';
import type { Delivery } from '../transcript-delivery.js';
import type { CallPlan, TranscriptsRequest } from '../transcript-planner.js';
import { TranscriptsService } from '../transcripts.service.js';
import { serializeJson, serializeNdjson, writeResponse } from './response-writer.js';

export const NDJSON = 'application/x-ndjson';

/** Responds to an HTTP request with the transcripts of the videos that a source lists. */
@Injectable()
export class TranscriptsResponse {
  constructor(private readonly transcripts: TranscriptsService) {}

  /**
   * Sends the entries of all videos, as JSON in the order of the list or as NDJSON in the order in which they finish.
   *
   * @throws the errors that refuse the call, before anything is written
   */
  async send(wanted: TranscriptsRequest, request: Request, response: Response): Promise<void> {
    const plan = await this.prepare(wanted, request, response);
    const encoding = request.acceptsEncodings('gzip', 'identity') === 'gzip' ? 'gzip' : 'identity';
    const delivery = this.deliver(plan, encoding === 'gzip' ? 'deflated' : 'json', request);
    setQuotaHeaders(response, plan.quota);
    response.vary('Accept-Encoding');
    response.vary('Accept');
    const streamsLines = request.accepts(['application/json', NDJSON]) === NDJSON;
    response.setHeader('Content-Type', `${streamsLines ? NDJSON : 'application/json'}; charset=utf-8`);
    const chunks = streamsLines
      ? serializeNdjson(delivery.events('as-finished'))
      : serializeJson(delivery.events('listed'));
    await writeResponse(response, chunks, encoding);
  }

  /** Plans the call of a request. @throws the errors that refuse the call */
  async prepare(wanted: TranscriptsRequest, request: Request, response: Response): Promise<CallPlan> {
    const { caller, requestId, startedAtMs, log } = requestContext(request);
    const plan = await this.transcripts.prepare(
      wanted,
      { organizationId: caller.organization.id, keyId: caller.keyId, requestId },
      { startedAtMs, responseEnd: responseEnd(response) },
    );
    logPlan(log, plan);
    return plan;
  }

  /** Starts the delivery of a plan and adds its counts to the log line of the request. */
  deliver(plan: CallPlan, form: TextForm, request: Request): Delivery {
    const delivery = this.transcripts.deliver(plan, form);
    requestContext(request).log['counts'] = delivery.summary;
    return delivery;
  }
}

/** Adds what a call is about to its log line. */
export function logPlan(log: RequestContext['log'], { header, resource, order }: CallPlan): void {
  if (header.type === 'channel') log['channelId'] = resource;
  else if (header.type === 'playlist') log['playlistId'] = resource;
  else log['videos'] = order.length;
}

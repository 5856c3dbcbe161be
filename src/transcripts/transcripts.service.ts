import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { inSpan } from '../observability/tracing/tracer.js';
import type { TextForm } from './cache/transcript-text.js';
import { Call, type CallTimes } from './call.js';
import { QuotaReservations, type Payer } from './quota-reservations.js';
import { ResponseBodies, type BodyEncoding, type BodyFormat, type ResponseBody } from './response/response-bodies.js';
import { TranscriptDelivery, type Delivery } from './transcript-delivery.js';
import { TranscriptPlanner, type CallPlan, type TranscriptsRequest } from './transcript-planner.js';

/** The use case: the transcripts of a channel's newest uploads. */
@Injectable()
export class TranscriptsService {
  constructor(
    private readonly planner: TranscriptPlanner,
    private readonly delivery: TranscriptDelivery,
    private readonly bodies: ResponseBodies,
    private readonly reservations: QuotaReservations,
    private readonly environment: Environment,
  ) {}

  /**
   * Opens a call and plans it. Everything that can refuse the call happens here; when it throws, nothing was fetched and
   * nothing is charged.
   *
   * @throws ChannelNotFoundError | PlanLimitExceededError | UpstreamError | InvalidApiKeyError | ServiceUnavailableError
   */
  prepare(request: TranscriptsRequest, payer: Payer, times: CallTimes): Promise<CallPlan> {
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, times);
    return inSpan('transcripts.prepare', { 'transcripts.limit': request.limit }, () =>
      this.planner.plan(request, payer, call),
    );
  }

  /**
   * Starts to fetch what the plan lacks and returns the events of the response; a failure is an entry. The reservation is
   * settled whether or not the events are read.
   *
   * @param form the form in which the texts are sent
   */
  deliver(plan: CallPlan, form: TextForm): Delivery {
    return this.delivery.start(plan, form);
  }

  /**
   * As `deliver`, for an HTTP response: returns its body, which has to be written at once.
   *
   * @param format how the events are serialized
   */
  respond(plan: CallPlan, format: BodyFormat, encoding: BodyEncoding): ResponseBody {
    return this.bodies.open(plan, format, encoding);
  }

  /** Resolves when all fetches have ended and all reservations are settled. */
  idle(): Promise<void> {
    return this.reservations.idle();
  }
}

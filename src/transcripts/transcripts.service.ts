import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { inSpan } from '../observability/tracing/tracer.js';
import { Call, type CallOptions } from './call.js';
import { QuotaReservations, type Payer, type Settle } from './quota-reservations.js';
import { TranscriptDelivery, type Delivery } from './transcript-delivery.js';
import { TranscriptPlanner, type CallPlan, type TranscriptsRequest } from './transcript-planner.js';

/** The use case: the transcripts of the videos that a source lists. */
@Injectable()
export class TranscriptsService {
  constructor(
    private readonly planner: TranscriptPlanner,
    private readonly delivery: TranscriptDelivery,
    private readonly reservations: QuotaReservations,
    private readonly environment: Environment,
  ) {}

  /**
   * Opens a call and plans it. Everything that can refuse the call happens here; when it throws, nothing was fetched and
   * nothing is charged.
   *
   * @throws PlanLimitExceededError | UpstreamError | InvalidApiKeyError | ServiceUnavailableError, and what the source of
   * the request throws
   */
  prepare(request: TranscriptsRequest, payer: Payer, options: CallOptions): Promise<CallPlan> {
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, options);
    return inSpan('transcripts.prepare', {}, async (span) => {
      const plan = await this.planner.plan(request, payer, call).catch((error: unknown) => {
        call.finish();
        throw error;
      });
      span.setAttributes({ 'transcripts.source': plan.header.type, 'transcripts.videos': plan.order.length });
      return plan;
    });
  }

  /**
   * Starts to fetch what the plan lacks and returns the events of the response; a failure is an entry. The reservation is
   * settled whether or not the events are read.
   *
   * @param settle replaces the settlement, for a caller that settles together with changes of its own
   */
  deliver(plan: CallPlan, settle?: Settle): Delivery {
    return this.delivery.start(plan, settle);
  }

  /** Resolves when all fetches have ended and all reservations are settled. */
  idle(): Promise<void> {
    return this.reservations.idle();
  }
}

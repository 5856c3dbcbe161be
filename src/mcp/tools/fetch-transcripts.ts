import { logPlan } from '../../transcripts/response/transcripts-response.js';
import { payerOf } from '../../transcripts/quota-reservations.js';
import type { Delivery } from '../../transcripts/transcript-delivery.js';
import type { Summary, TranscriptsEvent } from '../../transcripts/transcript-events.js';
import type { CallPlan, TranscriptsRequest } from '../../transcripts/call-plan.js';
import { CallCanceled, type ToolCall, type ToolServices } from './tool.js';

/** The transcripts that a tool reads. */
interface FetchedTranscripts {
  plan: CallPlan;
  /** Counts of the entries so far. */
  summary: Summary;
  /**
   * The entries in the order of the list. Ending the iteration early cancels the videos that are not fetched yet.
   *
   * @throws CallCanceled when the client has disconnected or has canceled the call
   */
  events: AsyncIterable<TranscriptsEvent>;
}

/**
 * Plans a call, logs it and starts to fetch the transcripts.
 *
 * @throws the errors that refuse the call
 */
export async function fetchTranscripts(
  request: TranscriptsRequest,
  call: ToolCall,
  { transcripts }: Pick<ToolServices, 'transcripts'>,
): Promise<FetchedTranscripts> {
  const { context, times } = call;
  const plan = await transcripts.prepare(request, payerOf(context), times);
  logPlan(context.log, plan);
  const delivery = transcripts.deliver(plan);
  context.log['counts'] = delivery.summary;
  return { plan, summary: delivery.summary, events: eventsOf(plan, delivery, call) };
}

/** The events of a delivery. Reports the progress after each entry that was read. */
async function* eventsOf(plan: CallPlan, delivery: Delivery, call: ToolCall): AsyncGenerator<TranscriptsEvent> {
  let videos = 0;
  let complete = false;
  try {
    for await (const event of delivery.events('listed')) {
      if (call.times.responseEnd.aborted) throw new CallCanceled();
      yield event;
      if (event.type === 'result') call.progress(++videos, plan.order.length);
    }
    complete = true;
  } finally {
    // Nobody waits for the other videos.
    if (!complete) plan.call.disconnect();
  }
}

import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { from, type Observable } from 'rxjs';
import { RequiresFeature } from '../auth/guarded.decorator.js';
import { serializeNdjson } from '../transcripts/response/serialization.js';
import { Environment } from '../config/environment.js';
import { Call } from '../transcripts/call.js';
import { TranscriptsService } from '../transcripts/transcripts.service.js';
import { eventsFor } from './message-events.js';
import { MessageCalls, TRANSCRIPTS_PATTERN } from './message-calls.js';
import { readTranscriptsMessage } from './transcripts-message.js';

/** The one operation as a message, behind the gates of the HTTP route; its answer is a stream of events. */
@Controller()
@RequiresFeature('channel_transcripts')
export class MessagesController {
  constructor(
    private readonly transcripts: TranscriptsService,
    private readonly calls: MessageCalls,
    private readonly environment: Environment,
  ) {}

  @MessagePattern(TRANSCRIPTS_PATTERN)
  async list(@Payload() message: unknown, @Ctx() context: object): Promise<Observable<unknown>> {
    const exchange = this.calls.exchange(context);
    exchange.passed();
    const { id, query } = await readTranscriptsMessage(message);
    const { requestId, log, disconnected } = exchange;
    const { organization, keyId } = exchange.caller;
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, exchange.startedAtMs);
    disconnected.addEventListener('abort', () => call.disconnect(), { once: true });
    if (disconnected.aborted) call.disconnect();
    // A refused call has a deadline too, whose timer would outlive it.
    void exchange.ended().then(() => call.disconnect());
    const plan = await this.transcripts.prepare(
      {
        reference: id,
        limit: query.limit,
        languages: query.languages ?? [],
        organizationId: organization.id,
        keyId,
        requestId,
      },
      call,
    );
    log['channelId'] = plan.channel.id;
    const delivery = this.transcripts.deliver(plan, call, 'json');
    log['counts'] = delivery.summary;
    return from(eventsFor(exchange, serializeNdjson(delivery.events('as-finished'))));
  }
}

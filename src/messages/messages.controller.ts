import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { from, type Observable } from 'rxjs';
import { RequiresFeature } from '../auth/guarded.decorator.js';
import { DomainError } from '../domain/errors.js';
import { serializeNdjson, type Chunk } from '../transcripts/response/response-writer.js';
import { logPlan } from '../transcripts/response/transcripts-response.js';
import { ChannelUploads } from '../transcripts/sources/channel-uploads.js';
import { TranscriptsService } from '../transcripts/transcripts.service.js';
import { MessageCalls, TRANSCRIPTS_PATTERN, type MessageCall } from './message-calls.js';
import { readTranscriptsMessage } from './message-reader.js';

/** The operation of the HTTP route as a message, behind the same guards; the response is a stream of events. */
@Controller()
@RequiresFeature('channel_transcripts')
export class MessagesController {
  constructor(
    private readonly uploads: ChannelUploads,
    private readonly transcripts: TranscriptsService,
    private readonly calls: MessageCalls,
  ) {}

  @MessagePattern(TRANSCRIPTS_PATTERN)
  async list(@Payload() message: unknown, @Ctx() context: object): Promise<Observable<unknown>> {
    const call = this.calls.callOf(context);
    call.passed();
    const { id, query } = await readTranscriptsMessage(message);
    const { organization, keyId } = call.caller;
    const plan = await this.transcripts.prepare(
      { source: this.uploads.source(id, query), languages: query.languages },
      { organizationId: organization.id, keyId, requestId: call.requestId },
      call,
    );
    logPlan(call.log, plan);
    const delivery = this.transcripts.deliver(plan, 'json');
    call.log['counts'] = delivery.summary;
    return from(eventsFor(call, serializeNdjson(delivery.events('as-finished'))));
  }
}

/** An event exceeds the payload limit of the broker; the fetched transcripts stay cached. */
export class EventTooLargeError extends DomainError {
  readonly code = 'internal_error';

  constructor(bytes: number, bytesMax: number) {
    super(
      `An event of this response has ${bytes} bytes, and the message broker accepts ${bytesMax}. Use HTTP, or raise max_payload of the broker.`,
    );
  }
}

/**
 * Parses NDJSON lines into events, no faster than the reader takes them. Ends without an error when the caller
 * disconnects.
 *
 * @throws EventTooLargeError
 */
async function* eventsFor(call: MessageCall, lines: AsyncIterable<Chunk>): AsyncGenerator<unknown> {
  const { replyChannel } = call;
  for await (const line of lines) {
    const text = line.map((part) => (typeof part === 'string' ? part : part.bytes.toString())).join('');
    const { eventBytesMax } = replyChannel;
    const bytes = Buffer.byteLength(text);
    if (eventBytesMax !== undefined && bytes > eventBytesMax) throw new EventTooLargeError(bytes, eventBytesMax);
    if (call.isDisconnected) return;
    yield JSON.parse(text);
    await replyChannel.room();
  }
}

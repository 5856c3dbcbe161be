import type { ConsumerDeserializer, IncomingEvent, IncomingRequest } from '@nestjs/microservices';

/**
 * Takes the content out of a message that wants no answer, so that it is refused: like HEAD over HTTP it would do the
 * work, spend quota and return nothing.
 */
export class AnsweredOnly implements ConsumerDeserializer {
  /** @param hasReply whether there is a place to answer to, by what the transport tells */
  constructor(
    private readonly inner: ConsumerDeserializer,
    private readonly hasReply: (options: Record<string, unknown> | undefined) => boolean,
  ) {}

  async deserialize(value: unknown, options?: Record<string, unknown>): Promise<IncomingRequest | IncomingEvent> {
    const message = await this.inner.deserialize(value, options);
    const answered = 'id' in message && message.id !== undefined && this.hasReply(options);
    return answered ? message : { ...message, data: undefined };
  }
}

import type { Chunk } from '../transcripts/response/serialization.js';
import { DomainError } from '../domain/errors.js';
import type { ReplyChannel } from './reply-channel.js';

/** An event is larger than the broker takes; what was fetched stays in the cache. */
export class EventTooLargeError extends DomainError {
  readonly code = 'internal_error';

  constructor(bytes: number, bytesMax: number) {
    super(
      `An event of this answer has ${bytes} bytes, and the message broker takes ${bytesMax}. Ask over HTTP, or have its max_payload raised.`,
    );
  }
}

/** Who reads a stream of events. */
export interface EventReader {
  readonly replyChannel: ReplyChannel;
  readonly disconnected: AbortSignal;
}

/**
 * Lines of NDJSON as the objects that they hold, no faster than the reader takes them. Ends early, without an error,
 * when the reader has gone.
 *
 * @throws EventTooLargeError
 */
export async function* eventsFor(
  { replyChannel, disconnected }: EventReader,
  lines: AsyncIterable<Chunk>,
): AsyncGenerator<unknown> {
  for await (const line of lines) {
    const text = line.map((part) => (typeof part === 'string' ? part : part.bytes.toString())).join('');
    const { eventBytesMax } = replyChannel;
    const bytes = Buffer.byteLength(text);
    if (eventBytesMax !== undefined && bytes > eventBytesMax) throw new EventTooLargeError(bytes, eventBytesMax);
    if (disconnected.aborted) return;
    yield JSON.parse(text);
    await replyChannel.room();
  }
}

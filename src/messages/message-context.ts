import { RequestContext, requestContext, requestIdFrom } from '../http/server/request-context.js';
import { fieldsOf } from './message-reader.js';

/** The message's way back to its caller. */
export interface ReplyChannel {
  /** The pattern (TCP) or subject (NATS) of the message, in logs and spans. */
  readonly name: string;
  /** What messages arrive by: a connection (TCP) or a subject (NATS). It has at most half of a process's open messages. */
  readonly source: unknown;
  /** The address of the caller; undefined when the transport does not know it. */
  readonly address: string | undefined;
  /** Contains `traceparent` and `tracestate` when the caller sent them. */
  readonly traceHeaders: object;
  /** The maximum size of an event in bytes of JSON; undefined when there is none. */
  readonly eventBytesMax?: number | undefined;
  /** @returns removes the callback */
  onDisconnect(callback: () => void): () => void;
  /** Resolves when the reader (TCP) or the NATS server has taken what was sent. @param signal ends the wait (TCP) */
  taken(signal: AbortSignal): Promise<void>;
}

/** A call that arrived as a message. */
export class MessageContext extends RequestContext {
  readonly credentialLocation = 'the field "apiKey" of the message';
  readonly credential: string | undefined;
  isDisconnected = false;
  private readonly stopWatching: () => void;

  constructor(
    message: unknown,
    readonly replyChannel: ReplyChannel,
  ) {
    const { apiKey, requestId } = fieldsOf(message);
    super(requestIdFrom(requestId));
    this.credential = typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined;
    this.stopWatching = replyChannel.onDisconnect(() => this.disconnect());
  }

  get address(): string | undefined {
    return this.replyChannel.address;
  }

  /** The caller needs the response no more. */
  disconnect(): void {
    this.isDisconnected = true;
    this.finish();
  }

  override finish(): void {
    this.stopWatching();
    super.finish();
  }

  /** A message has no headers; `GET /usage` returns the quota. */
  setHeader(): void {}
}

/** The context of a message. @param rpcContext what Nest passes to its handler */
export function messageContext(rpcContext: object): MessageContext {
  const context = requestContext(rpcContext);
  if (!(context instanceof MessageContext)) throw new Error('The call did not arrive as a message.');
  return context;
}

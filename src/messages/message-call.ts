import { RequestContext, requestIdFrom } from '../http/request-context.js';
import type { MessageSlot } from './connection-calls.js';
import { fieldsOf } from './transcripts-message.js';
import type { ReplyChannel } from './reply-channel.js';

/** A call that came as a message: who makes it, and whether somebody still waits for it. */
export class MessageCall extends RequestContext {
  readonly credentialLocation = 'the field "apiKey" of the message';
  readonly apiKey: string | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly disconnected: AbortSignal;
  private readonly leaving = new AbortController();
  private readonly slot: MessageSlot;
  private end: () => void;
  private readonly over = new Promise<void>((resolve) => (this.end = resolve));

  constructor(
    message: unknown,
    readonly replyChannel: ReplyChannel,
  ) {
    const { apiKey, requestId } = fieldsOf(message);
    super(requestIdFrom(requestId));
    this.apiKey = typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined;
    this.disconnected = this.leaving.signal;
    this.slot = replyChannel.begin(() => this.disconnect());
  }

  get address(): string | undefined {
    return this.replyChannel.address;
  }

  ended(): Promise<void> {
    return this.over;
  }

  disconnect(): void {
    this.leaving.abort();
  }

  /** The guards have let it pass. */
  passed(): void {
    this.slot.passed();
  }

  finish(): void {
    this.slot.ended();
    this.end();
  }

  /** A message has no headers to tell by; `GET /usage` tells the quota. */
  setHeader(): void {}
}

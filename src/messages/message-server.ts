import type { ReplyChannel } from './reply-channel.js';

/** What both transports do for the service. */
export interface MessageServer {
  /** Where it takes messages, without a password. */
  readonly url: string;
  /** The way back to the caller of the message that came with this context. */
  replyChannel(context: object): ReplyChannel;
  /** Takes no new callers; those that are connected are still answered. */
  stopAccepting(): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void> | void;
}

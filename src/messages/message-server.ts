import type { Outlet } from './reply-channel.js';

/** What both transports do for the service. */
export interface MessageServer {
  /** Where it takes messages, without a password. */
  readonly url: string;
  /** The way back to the caller of the message that came with this context. */
  outlet(context: object): Outlet;
  /** Takes no new callers; those that are connected are still answered. */
  takeNoMore(): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void> | void;
}

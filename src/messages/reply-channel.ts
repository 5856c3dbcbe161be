import type { MessageSlot } from './connection-calls.js';

/** The way back to the caller of a message. */
export interface ReplyChannel {
  /** Where the caller is, as far as the transport tells. */
  readonly address: string | undefined;
  /** `traceparent` and `tracestate`, where the sender put them beside the message. */
  readonly traceHeaders: TraceHeaders;
  /** The most bytes of JSON that an event may have; undefined when there is no bound. */
  readonly eventBytesMax: number | undefined;
  /** Whether no more messages are to be begun, because too many of those that came have not passed the guards. */
  readonly isFull: boolean;
  /** Takes a place for the message on its connection. `leave` is called when that closes before the place is given back. */
  begin(disconnect: () => void): MessageSlot;
  /** Waits until what was sent has been taken, or as much of it that more may be sent; gives up a reader who takes nothing. */
  room(): Promise<void>;
  /** Waits until all that was sent has left this process, or the caller has gone. */
  flushed(): Promise<void>;
}

export type TraceHeaders = Readonly<Record<string, string>>;

/** Reads them from whatever a transport keeps beside a message. */
export function traceHeaders(read: (name: string) => unknown): TraceHeaders {
  const given = ['traceparent', 'tracestate'].map((name) => [name, read(name)] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
}

/** Nest hands an event to the transport in a later turn than it takes it in. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The way back to the caller of a message. */
export interface Outlet {
  /** Where the caller is, as far as the transport tells. */
  readonly address: string | undefined;
  /** `traceparent` and `tracestate`, where the sender put them beside the message. */
  readonly traceHeaders: TraceHeaders;
  /** The most bytes of JSON that an event may have; undefined when there is no bound. */
  readonly eventBytesMax: number | undefined;
  /** Whether nobody can be answered any more. */
  readonly gone: boolean;
  /** Calls back once when the caller has gone, as far as the transport tells. */
  onGone(told: () => void): void;
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

/** A reader who takes nothing for this long is gone or as good as gone, as over HTTP. */
export const STALLED_READER_MS = 30_000;

/** Nest hands an event to the transport in a later turn than it takes it in. */
export function handedOver(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

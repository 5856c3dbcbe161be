import { Logger } from '@nestjs/common';
import { causeText } from '../http/error.filters.js';
import { RefusalSampler } from '../observability/logging/refusal-sampler.js';

/** The interface of both transports, TCP and NATS, to the service. */
export interface MessageServer {
  /** The address where it receives messages, without a password. */
  readonly url: string;
  /** The reply channel of the message that has this context. */
  replyChannel(context: object): ReplyChannel;
  /** Accepts no new callers; those that are connected still get their responses. */
  stopAccepting(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void> | void;
}

/** The way back to the caller of a message. */
export interface ReplyChannel {
  readonly connection: CallerConnection;
  /** The address of the caller; undefined when the transport does not know it. */
  readonly address: string | undefined;
  /** `traceparent` and `tracestate` of the message. */
  readonly traceHeaders: TraceHeaders;
  /** The maximum size of an event in bytes of JSON; undefined when there is none. */
  readonly eventBytesMax: number | undefined;
  /** Resolves when the reader has taken what was sent, or is disconnected for taking nothing. */
  taken(): Promise<void>;
}

export type TraceHeaders = Readonly<Record<string, string>>;

/** Reads the trace headers from the metadata of a message. */
export function traceHeaders(read: (name: string) => unknown): TraceHeaders {
  const given = ['traceparent', 'tracestate'].map((name) => [name, read(name)] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
}

/** Nest passes an event to the transport one turn of the event loop after it was emitted. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Bounds on what a caller can make the service store. Constants: operators need no choice. */
export interface MessageLimits {
  /** Size of one message. The largest valid one has less than 10 KB. */
  messageBytesMax: number;
  /** Time in which nothing arrives of an unfinished message. */
  messageMs: number;
  /** Time without traffic after which a connection is closed. Nest's client reconnects for its next message. */
  idleMs: number;
  /** Time in which a reader takes nothing of what waits for it. */
  stalledReaderMs: number;
  connectionsMax: number;
  /** Unsent bytes of one connection. A call waits for its reader, so only many concurrent calls reach this. */
  waitingBytesMax: number;
}

export const MESSAGE_LIMITS: MessageLimits = {
  messageBytesMax: 64 * 1024,
  messageMs: 5_000,
  idleMs: 10 * 60_000,
  stalledReaderMs: 30_000,
  connectionsMax: 1_024,
  waitingBytesMax: 32 * 1024 * 1024,
};

/**
 * The connection on which messages of a caller arrive. A running message is an entry of a set and removed at its end, so
 * that a long-lived connection retains nothing of ended messages.
 */
export class CallerConnection {
  private readonly running = new Set<() => void>();
  private closed = false;

  /**
   * @param disconnect called when the connection closes while the message runs, at once when it is closed already
   * @returns ends the message
   */
  begin(disconnect: () => void): () => void {
    const entry = (): void => disconnect();
    if (this.closed) disconnect();
    else this.running.add(entry);
    return () => void this.running.delete(entry);
  }

  /** Disconnects all running messages. */
  close(): void {
    this.closed = true;
    const entries = [...this.running];
    this.running.clear();
    for (const disconnect of entries) disconnect();
  }
}

const CAUSE_CHARACTERS_MAX = 200;

/** Logs protocol faults of callers: at most 20 short lines of each fault in ten seconds. */
export class MessageFaults {
  private readonly logger = new Logger('Messages');
  private readonly sampler = new RefusalSampler((counts) =>
    this.logger.warn({ event: 'message_faults_not_logged', counts }),
  );

  /** @param fault one of a fixed number of names */
  report(fault: string, error?: unknown): void {
    if (!this.sampler.allows(fault)) return;
    const cause = error === undefined ? undefined : causeText(error).slice(0, CAUSE_CHARACTERS_MAX);
    this.logger.warn({ event: 'message_fault', fault, ...(cause !== undefined && { cause }) });
  }
}

import { Logger } from '@nestjs/common';
import { causeText } from '../http/as-domain-error.js';
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

/** The connection back to the caller of a message. */
export interface ReplyChannel {
  /** The address of the caller; undefined when the transport does not know it. */
  readonly address: string | undefined;
  /** `traceparent` and `tracestate` of the message. */
  readonly traceHeaders: TraceHeaders;
  /** The maximum size of an event in bytes of JSON; undefined when there is none. */
  readonly eventBytesMax: number | undefined;
  /** Whether too many messages are pending, so that new ones have to be refused. */
  readonly isFull: boolean;
  /** Takes a slot for a message. `disconnect` is called when the connection closes before the slot is ended. */
  begin(disconnect: () => void): MessageSlot;
  /** Resolves when more may be sent: when the reader has taken enough, or is disconnected for taking nothing. */
  room(): Promise<void>;
  /** Resolves when everything sent has left this process, or the caller has disconnected. */
  flushed(): Promise<void>;
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

/** Bounds on what unauthenticated callers can make the service store and do. Constants: operators need no choice. */
export interface MessageLimits {
  /** Size of one message. The largest valid one has less than 10 KB. */
  messageBytesMax: number;
  /** From the first byte of a message to its last. */
  messageMs: number;
  /** Time without a running message after which a connection is closed. Nest's client reconnects for its next message. */
  idleMs: number;
  /** Time in which a reader takes nothing of what waits for it. */
  stalledReaderMs: number;
  connectionsMax: number;
  connectionsPerAddressMax: number;
  /** Unfinished messages of all connections. */
  incomingBytesMax: number;
  /** Unsent bytes of one connection. A call waits for its reader, so only many concurrent calls reach this. */
  waitingBytesMax: number;
  /** Pending messages: those that have not passed the guards. */
  pendingPerConnectionMax: number;
  pendingMax: number;
  /** Interval of the checks of these times. */
  checkMs: number;
}

export const MESSAGE_LIMITS: MessageLimits = {
  messageBytesMax: 64 * 1024,
  messageMs: 15_000,
  idleMs: 10 * 60_000,
  stalledReaderMs: 30_000,
  connectionsMax: 1_024,
  connectionsPerAddressMax: 256,
  incomingBytesMax: 16 * 1024 * 1024,
  waitingBytesMax: 32 * 1024 * 1024,
  pendingPerConnectionMax: 64,
  pendingMax: 1_000,
  checkMs: 1_000,
};

/** The number of pending messages of all connections: those that have not passed the guards. */
export class PendingMessages {
  count = 0;
}

/** The slot of a message on its connection. Both methods are idempotent. */
export interface MessageSlot {
  /** The message has passed the guards: the limits of calls in flight apply from here on. */
  passed(): void;
  /** The message has its response, or its caller has disconnected. */
  ended(): void;
}

/**
 * The running messages of one connection. A message is an entry of a set and removed at its end, so that a long-lived
 * connection retains nothing of ended messages.
 */
export class ConnectionCalls {
  private readonly running = new Set<() => void>();
  private pending = 0;
  private closed = false;

  constructor(
    private readonly all: PendingMessages,
    /** Called whenever the number of pending messages decreases. */
    private readonly onRoom: () => void = () => undefined,
  ) {}

  /** The number of pending messages of this connection. */
  get pendingCount(): number {
    return this.pending;
  }

  get isIdle(): boolean {
    return this.running.size === 0;
  }

  /** @param disconnect called when the connection closes while the message runs, at once when it is closed already */
  begin(disconnect: () => void): MessageSlot {
    const entry = (): void => disconnect();
    const passed = this.countPending();
    if (this.closed) disconnect();
    else this.running.add(entry);
    return {
      passed,
      ended: () => {
        this.running.delete(entry);
        passed();
      },
    };
  }

  /** Disconnects all running messages. */
  close(): void {
    this.closed = true;
    const entries = [...this.running];
    this.running.clear();
    for (const disconnect of entries) disconnect();
  }

  private countPending(): () => void {
    let counted = true;
    this.pending += 1;
    this.all.count += 1;
    return () => {
      if (!counted) return;
      counted = false;
      this.pending -= 1;
      this.all.count -= 1;
      this.onRoom();
    };
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

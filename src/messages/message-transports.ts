import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { ServerNats, ServerTCP, type NatsContext, type TcpContext, type TcpSocket } from '@nestjs/microservices';
import type { Msg, MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Environment } from '../config/environment.js';
import { causeText } from '../http/errors/error.filter.js';
import { RepeatedLines } from '../observability/logging/logger.js';

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

const logger = new Logger('Messages');
const faults = new RepeatedLines((line) => logger.warn(line));

/** A fault that anybody who can connect can cause: a message that is no JSON, a reply that NATS does not permit. */
function logFault(error: unknown): void {
  faults.write('messages_fault', { event: 'messages_fault', cause: causeText(error) });
}

/** One message in a turn of the event loop: a read has hundreds of them, and HTTP would wait for all. */
class Turns {
  waiting = 0;
  last = Promise.resolve();

  async next(): Promise<void> {
    this.waiting += 1;
    this.last = this.last.then(() => nextTurn());
    await this.last;
    this.waiting -= 1;
  }
}

/** Nest counts what arrives in one read, up to 64 KB, together with the message that it completes. */
const BUFFERED_CHARACTERS_MAX = 2 * 64 * 1024;
/** Unsent bytes of one connection. A call waits for its reader, so only many concurrent calls reach this. */
const UNSENT_BYTES_MAX = 32 * 1024 * 1024;
const CONNECTIONS_MAX = 1_024;
/** How much longer than the deadline of a call nothing may be sent or taken, before a connection is closed. */
const IDLE_MARGIN_SECONDS = 60;

/**
 * Nest's TCP server, for a trusted network: it has no encryption, and its limits are per connection. Ignores messages that expect
 * no reply: they would be charged for a response that nobody receives.
 */
export class TcpTransport extends ServerTCP {
  /** The variables that say where messages are received. */
  readonly settings = 'MESSAGE_HOST or MESSAGE_PORT';
  /** Rejects when the server cannot listen, for reasons that Nest does not report as well. */
  readonly listening: Promise<unknown>;
  private readonly listener = this.unwrap<Server>();
  private readonly turns = new WeakMap<Socket, Turns>();

  constructor({ MESSAGE_HOST: host, MESSAGE_PORT: port, REQUEST_DEADLINE_SECONDS: deadlineSeconds }: Environment) {
    super({ host, port, maxBufferSize: BUFFERED_CHARACTERS_MAX, maxSendBufferSize: UNSENT_BYTES_MAX });
    this.listening = once(this.listener, 'listening');
    this.listener.maxConnections = CONNECTIONS_MAX;
    this.listener.on('connection', (socket: Socket) => {
      // Each running call adds one.
      socket.setMaxListeners(0);
      socket.setTimeout((deadlineSeconds + IDLE_MARGIN_SECONDS) * 1000, () => socket.destroy());
    });
  }

  get url(): string {
    const address = this.listener.address();
    return `tcp://${this.host}:${typeof address === 'object' && address ? address.port : this.port}`;
  }

  replyChannel(context: TcpContext): ReplyChannel {
    const socket = context.getSocketRef().netSocket;
    return {
      name: context.getPattern(),
      source: socket,
      address: socket.remoteAddress,
      traceHeaders: { ...context.getMetadata() },
      onDisconnect: (callback) => {
        socket.once('close', callback);
        return () => void socket.off('close', callback);
      },
      taken: async (signal) => {
        await nextTurn();
        if (socket.writableNeedDrain) await once(socket, 'drain', { signal }).catch(() => undefined);
      },
    };
  }

  /** Accepts no more connections; running calls still get their responses. */
  stopAccepting(): Promise<void> {
    this.listener.close();
    return Promise.resolve();
  }

  override async handleEvent(): Promise<void> {}

  /** Reads no more from a connection while its messages wait for their turns. */
  override async handleMessage(socket: TcpSocket, message: unknown): Promise<unknown> {
    const { netSocket } = socket;
    const turns = this.turns.get(netSocket) ?? new Turns();
    this.turns.set(netSocket, turns);
    netSocket.pause();
    await turns.next();
    if (netSocket.destroyed) return undefined;
    if (turns.waiting === 0 && !netSocket.writableNeedDrain) netSocket.resume();
    return super.handleMessage(socket, message);
  }

  /** The start itself reports why the server cannot listen. */
  protected override readonly handleError = (error: unknown): void => {
    if (this.listener.listening) logFault(error);
  };
}

/** About 1 KB each. The client cannot stop to read; beyond it messages are refused within the read. */
const WAITING_MAX = 5_000;
/** What Nest adds to an event: the ID of the message and field names. */
const ENVELOPE_BYTES = 1024;

/** Nest's NATS server, as a member of a queue group. The client reconnects by itself, however long the servers are unavailable. */
export class NatsTransport extends ServerNats {
  readonly settings = 'NATS_URL';
  readonly listening = undefined;
  /** Where messages are received, without a password. */
  readonly url: string;
  isConnected = true;
  private readonly joined: Subscription[] = [];
  private readonly turns = new Turns();

  constructor({ NATS_URL: urls = [], NATS_QUEUE: queue }: Environment) {
    const servers = urls.map((url) => new URL(url));
    super({
      servers: servers.map(({ host }) => host),
      ...credentialsOf(servers[0]),
      ...(servers.some(({ protocol }) => protocol === 'tls:') && { tls: {} }),
      name: 'channel-transcripts',
      queue,
      maxReconnectAttempts: -1,
    });
    this.url = servers.map(({ protocol, host }) => `${protocol}//${host}`).join(',');
  }

  replyChannel(context: NatsContext): ReplyChannel {
    const client = this.unwrap<NatsConnection>();
    const headers = context.getHeaders() as MsgHdrs | undefined;
    return {
      name: context.getSubject(),
      source: context.getSubject(),
      // Callers are connected to the NATS server, which reports neither their address nor their end.
      address: undefined,
      onDisconnect: () => () => undefined,
      traceHeaders: { traceparent: headers?.get('traceparent'), tracestate: headers?.get('tracestate') },
      eventBytesMax: client.info && client.info.max_payload - ENVELOPE_BYTES,
      taken: async () => {
        await nextTurn();
        await client.flush().catch(() => undefined);
      },
    };
  }

  /**
   * Leaves the queue group, which Nest does only when it closes the connection. Resolves when the messages that were received
   * before are being handled.
   */
  stopAccepting(): Promise<void> {
    for (const subscription of this.joined) subscription.unsubscribe();
    return this.turns.last;
  }

  /** As over TCP. */
  override async handleEvent(): Promise<void> {}

  override async handleMessage(channel: string, message: Msg): Promise<unknown> {
    if (this.turns.waiting < WAITING_MAX) await this.turns.next();
    return super.handleMessage(channel, message);
  }

  protected override readonly handleError = logFault;

  /** The client reports each change of the connection; Nest's own lines have no event. */
  override async handleStatusUpdates(client: NatsConnection): Promise<void> {
    for await (const status of client.status()) {
      if (status.type === 'error') logFault(status.error);
      if (status.type !== 'disconnect' && status.type !== 'reconnect') continue;
      this.isConnected = status.type === 'reconnect';
      if (this.isConnected) logger.log({ event: 'messages_connected' });
      else logger.error({ event: 'messages_disconnected' });
    }
  }

  override bindEvents(client: NatsConnection): void {
    const subscribe: NatsConnection['subscribe'] = (subject, options) => {
      const subscription = client.subscribe(subject, options);
      this.joined.push(subscription);
      return subscription;
    };
    super.bindEvents({ subscribe });
  }
}

function credentialsOf(url: URL | undefined): { user?: string; pass?: string; token?: string } {
  const [name, password] = [url?.username ?? '', url?.password ?? ''].map(decodeURIComponent);
  if (name === undefined || name === '') return {};
  return password === undefined || password === '' ? { token: name } : { user: name, pass: password };
}

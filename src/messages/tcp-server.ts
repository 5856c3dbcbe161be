import type { Server, Socket } from 'node:net';
import { ServerTCP, type IncomingEvent, type TcpContext } from '@nestjs/microservices';
import type { Environment } from '../config/environment.js';
import { PacketDeserializer } from './message-reader.js';
import {
  CallerConnection,
  MESSAGE_LIMITS,
  MessageFaults,
  nextTurn,
  traceHeaders,
  type MessageLimits,
  type MessageServer,
  type ReplyChannel,
  type TraceHeaders,
} from './message-transport.js';

/** Bytes that Node may read at once. Nest counts them together with the message that they complete. */
const READ_BYTES = 64 * 1024;

/** Receives messages over TCP. The callers are trusted: the transport has no encryption, and the limits are per connection. */
export class TcpMessages extends ServerTCP implements MessageServer {
  private listening = false;
  private readonly connections = new WeakMap<Socket, TcpConnection>();

  constructor(
    { MESSAGE_HOST: host, MESSAGE_PORT: port }: Pick<Environment, 'MESSAGE_HOST' | 'MESSAGE_PORT'>,
    private readonly limits: MessageLimits = MESSAGE_LIMITS,
    private readonly faults = new MessageFaults(),
  ) {
    super({
      host,
      port,
      maxBufferSize: limits.messageBytesMax + READ_BYTES,
      incompleteMessageTimeout: limits.messageMs,
      maxSendBufferSize: limits.waitingBytesMax,
      deserializer: new PacketDeserializer(
        (value) => value,
        () => true,
      ),
    });
    const server = this.unwrap<Server>();
    server.maxConnections = limits.connectionsMax;
    server.on('drop', () => this.faults.report('too_many_connections'));
  }

  /** The address on which it listens. */
  get url(): string {
    const address = this.unwrap<Server>().address();
    return typeof address === 'object' && address ? `tcp://${this.host}:${address.port}` : `tcp://${this.host}`;
  }

  /** Reports every error of listening; the base class reports two of them. */
  override listen(callback: (error?: unknown) => void): void {
    this.unwrap<Server>().once('error', (error: Error) => {
      if (!this.listening) callback(new Error(`${error.message}: change MESSAGE_HOST or MESSAGE_PORT.`));
    });
    super.listen((error?: unknown) => {
      if (error !== undefined) return;
      this.listening = true;
      callback();
    });
  }

  override bindHandler(socket: Socket): void {
    this.connections.set(socket, new TcpConnection(socket, this.limits));
    super.bindHandler(socket);
  }

  override async handleEvent(pattern: string, packet: IncomingEvent, context: TcpContext): Promise<unknown> {
    // The base class logs a line for each, with the pattern in it.
    if (!this.getHandlerByPattern(pattern)) return this.faults.report('unknown_pattern');
    return super.handleEvent(pattern, packet, context);
  }

  replyChannel(context: TcpContext): ReplyChannel {
    const metadata = context.getMetadata() ?? {};
    const connection = this.connections.get(context.getSocketRef().netSocket);
    if (!connection) throw new Error('The message did not arrive on a connection of this server.');
    return new TcpReplyChannel(
      connection,
      traceHeaders((name) => Reflect.get(metadata, name)),
    );
  }

  stopAccepting(): Promise<void> {
    this.unwrap<Server>().close();
    return Promise.resolve();
  }

  /** Reports no cause, because Nest quotes what it cannot parse, which may contain a key. */
  protected override handleError(): void {
    if (this.listening) this.faults.report('invalid_data');
  }
}

/** One connection of a caller. Nest reads nothing from it while responses wait for its reader. */
class TcpConnection extends CallerConnection {
  readonly address: string | undefined;
  private draining: Promise<void> | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly limits: MessageLimits,
  ) {
    super();
    this.address = socket.remoteAddress;
    socket.setTimeout(limits.idleMs, () => socket.destroy());
    socket.once('close', () => this.close());
  }

  /** Resolves when the reader has taken what was sent, or the connection is closed. */
  drained(): Promise<void> {
    const { socket, limits } = this;
    if (socket.destroyed || !socket.writableNeedDrain) return Promise.resolve();
    return (this.draining ??= new Promise((resolve) => {
      const done = (): void => {
        socket.off('drain', done).off('close', done).setTimeout(limits.idleMs);
        this.draining = undefined;
        resolve();
      };
      // Node counts each part of a large write that the reader takes as activity.
      socket.setTimeout(limits.stalledReaderMs).once('drain', done).once('close', done);
    }));
  }
}

class TcpReplyChannel implements ReplyChannel {
  readonly eventBytesMax = undefined;

  constructor(
    readonly connection: TcpConnection,
    readonly traceHeaders: TraceHeaders,
  ) {}

  get address(): string | undefined {
    return this.connection.address;
  }

  async taken(): Promise<void> {
    await nextTurn();
    await this.connection.drained();
  }
}

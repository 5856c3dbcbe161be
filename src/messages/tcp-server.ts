import { createServer, type Server, type Socket } from 'node:net';
import { ServerTCP, type IncomingEvent, type TcpContext } from '@nestjs/microservices';
import type { Environment } from '../config/environment.js';
import { networkOf } from '../http/client-address.js';
import { PacketDeserializer } from './message-reader.js';
import {
  MESSAGE_LIMITS,
  MessageFaults,
  nextTurn,
  PendingMessages,
  traceHeaders,
  type MessageLimits,
  type MessageServer,
  type MessageSlot,
  type ReplyChannel,
  type TraceHeaders,
} from './message-transport.js';
import { TcpConnection, type ConnectionFault, type ConnectionHost } from './tcp-connection.js';

/** Maximum bytes that Node reads ahead from a paused connection. */
const UNREAD_BYTES_MAX = 16 * 1024;
/** The usual size of the network of one household or one server. */
const IPV6_PREFIX_BITS = 64;

/** Receives messages over TCP. */
export class TcpMessages extends ServerTCP implements MessageServer {
  private listening = false;
  private readonly connections = new Map<Socket, TcpConnection>();
  private readonly countByNetwork = new Map<string, number>();
  private readonly shared: ConnectionHost;
  private checks: NodeJS.Timeout | undefined;

  constructor(
    { MESSAGE_HOST: host, MESSAGE_PORT: port }: Pick<Environment, 'MESSAGE_HOST' | 'MESSAGE_PORT'>,
    private readonly limits: MessageLimits = MESSAGE_LIMITS,
    private readonly faults = new MessageFaults(),
  ) {
    super({
      host,
      port,
      deserializer: new PacketDeserializer(
        (value) => value,
        () => true,
      ),
    });
    const report = (fault: ConnectionFault): void => this.faults.report(fault);
    this.shared = { limits, pending: new PendingMessages(), incomingBytes: 0, report };
  }

  /** The address on which it listens. */
  get url(): string {
    const address = this.server.address();
    return typeof address === 'object' && address ? `tcp://${this.host}:${address.port}` : `tcp://${this.host}`;
  }

  /** Reports every error of listening; the base class reports two of them. */
  override listen(callback: (error?: unknown) => void): void {
    this.server.once('error', (error: Error) => {
      if (!this.listening) callback(new Error(`${error.message}: change MESSAGE_HOST or MESSAGE_PORT.`));
    });
    super.listen((error?: unknown) => {
      if (error !== undefined) return;
      this.listening = true;
      this.checks = setInterval(() => this.checkConnections(), this.limits.checkMs).unref();
      callback();
    });
  }

  override bindHandler(socket: Socket): void {
    const network = networkOf(socket.remoteAddress, IPV6_PREFIX_BITS);
    const count = this.countByNetwork.get(network) ?? 0;
    const { connectionsMax, connectionsPerAddressMax } = this.limits;
    if (this.connections.size >= connectionsMax || count >= connectionsPerAddressMax) {
      this.faults.report(
        count >= connectionsPerAddressMax ? 'too_many_connections_of_address' : 'too_many_connections',
      );
      socket.on('error', () => undefined).destroy();
      return;
    }
    this.countByNetwork.set(network, count + 1);
    socket.once('close', () => {
      this.connections.delete(socket);
      const others = (this.countByNetwork.get(network) ?? 1) - 1;
      if (others > 0) this.countByNetwork.set(network, others);
      else this.countByNetwork.delete(network);
    });
    super.bindHandler(socket);
  }

  override async handleEvent(pattern: string, packet: IncomingEvent, context: TcpContext): Promise<unknown> {
    // The base class logs a line for each, with the pattern in it.
    if (!this.getHandlerByPattern(pattern)) return this.faults.report('unknown_pattern');
    return super.handleEvent(pattern, packet, context);
  }

  replyChannel(context: TcpContext): ReplyChannel {
    const metadata = context.getMetadata() ?? {};
    const connection = context.getSocketRef();
    if (!(connection instanceof TcpConnection))
      throw new Error('The message did not arrive on a connection of this server.');
    return new TcpReplyChannel(
      connection,
      traceHeaders((name) => Reflect.get(metadata, name)),
    );
  }

  stopAccepting(): Promise<void> {
    this.unwrap<Server>().close();
    return Promise.resolve();
  }

  override close(): void {
    clearInterval(this.checks);
    super.close();
  }

  protected override init(): void {
    this.server = createServer({ highWaterMark: UNREAD_BYTES_MAX }, (socket) => this.bindHandler(socket));
    this.registerListeningListener(this.server);
    this.registerErrorListener(this.server);
    this.registerCloseListener(this.server);
  }

  protected override getSocketInstance(socket: Socket): TcpConnection {
    const connection = new TcpConnection(socket, this.shared);
    this.connections.set(socket, connection);
    return connection;
  }

  protected override handleError(error: unknown): void {
    if (this.listening) this.faults.report('transport_error', error);
  }

  private checkConnections(): void {
    const nowMs = performance.now();
    for (const connection of this.connections.values()) connection.check(nowMs);
  }
}

class TcpReplyChannel implements ReplyChannel {
  readonly address: string | undefined;
  readonly eventBytesMax = undefined;
  /** A connection with too many pending messages is not read. */
  readonly isFull = false;

  constructor(
    private readonly connection: TcpConnection,
    readonly traceHeaders: TraceHeaders,
  ) {
    this.address = connection.netSocket.remoteAddress;
  }

  begin(disconnect: () => void): MessageSlot {
    return this.connection.calls.begin(disconnect);
  }

  async room(): Promise<void> {
    await nextTurn();
    await this.connection.room();
  }

  async flushed(): Promise<void> {
    await nextTurn();
    await this.connection.flushed();
  }
}

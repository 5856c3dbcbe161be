import { createServer, type Server, type Socket } from 'node:net';
import { ServerTCP, type IncomingEvent, type TcpContext } from '@nestjs/microservices';
import type { Environment } from '../config/environment.js';
import { networkOf } from '../http/client-address.js';
import { PendingMessages, type MessageSlot } from './connection-calls.js';
import { MESSAGE_LIMITS, type MessageLimits } from './message-limits.js';
import { PacketDeserializer } from './message-packet.js';
import { MessageReports } from './message-reports.js';
import type { MessageServer } from './message-server.js';
import { nextTurn, traceHeaders, type ReplyChannel, type TraceHeaders } from './reply-channel.js';
import { TcpConnection, type ConnectionFault, type ConnectionHost } from './tcp-connection.js';

/** Of what has arrived on a connection that is not read from for the moment. */
const UNREAD_BYTES_MAX = 16 * 1024;
/** What one household or one rented machine is given. */
const IPV6_PREFIX_BITS = 64;

/** Takes messages over TCP. */
export class TcpMessages extends ServerTCP implements MessageServer {
  private listening = false;
  private readonly connections = new Map<Socket, TcpConnection>();
  private readonly countByNetwork = new Map<string, number>();
  private readonly reports = new MessageReports();
  private readonly shared: ConnectionHost;
  private checks: NodeJS.Timeout | undefined;

  constructor(
    { MESSAGE_HOST: host, MESSAGE_PORT: port }: Pick<Environment, 'MESSAGE_HOST' | 'MESSAGE_PORT'>,
    private readonly limits: MessageLimits = MESSAGE_LIMITS,
  ) {
    super({
      host,
      port,
      deserializer: new PacketDeserializer(
        (value) => value,
        () => true,
      ),
    });
    const report = (fault: ConnectionFault): void => this.reports.report(fault);
    this.shared = { limits, pending: new PendingMessages(), incomingBytes: 0, report };
  }

  /** Where it listens. */
  get url(): string {
    const address = this.server.address();
    return typeof address === 'object' && address ? `tcp://${this.host}:${address.port}` : `tcp://${this.host}`;
  }

  /** Tells of every failure; the base knows of two. */
  override listen(callback: (error?: unknown) => void): void {
    this.server.once('error', (error: Error) => {
      if (!this.listening) callback(new Error(`${error.message}: choose another MESSAGE_HOST or MESSAGE_PORT.`));
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
      this.reports.report(
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
    // The base logs a line for each, with the pattern in it.
    if (!this.getHandlerByPattern(pattern)) return this.reports.report('unknown_pattern');
    return super.handleEvent(pattern, packet, context);
  }

  replyChannel(context: TcpContext): ReplyChannel {
    const metadata = context.getMetadata() ?? {};
    const connection = context.getSocketRef();
    if (!(connection instanceof TcpConnection))
      throw new Error('The message did not come over a connection of this server.');
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
    if (this.listening) this.reports.report('transport_error', error);
  }

  private checkConnections(): void {
    const nowMs = performance.now();
    for (const connection of this.connections.values()) connection.check(nowMs);
  }
}

class TcpReplyChannel implements ReplyChannel {
  readonly address: string | undefined;
  readonly eventBytesMax = undefined;
  /** A connection that has too many is not read from. */
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

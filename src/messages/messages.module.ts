import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Logger, Module, type ExecutionContext } from '@nestjs/common';
import {
  NestMicroservice,
  ServerNats,
  ServerTCP,
  type NatsContext,
  type TcpContext,
  type TcpSocket,
} from '@nestjs/microservices';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Msg, MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Observable } from 'rxjs';
import { AuthModule } from '../auth/auth.module.js';
import type { Environment } from '../config/environment.js';
import { withTimeout } from '../domain/with-timeout.js';
import { causeText } from '../http/errors/error-report.js';
import { ShutdownState } from '../http/server/shutdown-state.js';
import { JobEngineModule } from '../jobs/jobs.module.js';
import { RepeatedLines } from '../observability/logging/repeated-lines.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import type { ReplyChannel } from './message-context.js';
import { OpenMessages } from './open-messages.js';
import { MessagesController } from './messages.controller.js';

/** The operations as messages, in addition to HTTP. Imported only when MESSAGE_TRANSPORT is set. */
@Module({
  imports: [AuthModule, JobEngineModule, TranscriptsModule],
  controllers: [MessagesController],
  providers: [OpenMessages],
})
export class MessagesModule {}

/** One of Nest's own transports. */
interface Transport {
  readonly server: ServerTCP | ServerNats;
  /** The variables that say where messages are received. */
  readonly settings: string;
  /** Rejects when the server cannot listen, for reasons that Nest does not report as well. */
  readonly listening?: Promise<unknown>;
  /** Where messages are received, without a password. */
  url(): string;
  replyChannel(context: object): ReplyChannel;
  /** Absent over TCP, which needs no other server. */
  isConnected?: () => boolean;
  /** Receives no more messages (NATS) or connections (TCP); running calls still get their responses. */
  stopAccepting(): Promise<void>;
}

/**
 * Starts to receive messages and registers their end for the shutdown. The filters and pipes of the application are for
 * HTTP and not inherited: the pre-request hook does the same for messages.
 *
 * @throws Error when the address is in use or NATS is unavailable
 */
export async function startMessages(app: NestExpressApplication, environment: Environment): Promise<void> {
  const transport = environment.MESSAGE_TRANSPORT === 'nats' ? natsTransport(environment) : tcpTransport(environment);
  const messages = app.get(OpenMessages);
  const microservice = app.connectMicroservice({ strategy: transport.server }, { deferInitialization: true });
  // The application has already called the initialization hooks.
  if (microservice instanceof NestMicroservice) microservice.setIsInitHookCalled(true);
  microservice.registerPreRequestHook((context: ExecutionContext, next: () => Observable<unknown>) =>
    messages.open(context, transport.replyChannel(context.switchToRpc().getContext()), next),
  );
  try {
    await Promise.all([microservice.listen(), transport.listening]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`Messages cannot be received at ${transport.url()}: ${reason}. Change ${transport.settings}.`, {
      cause: error,
    });
  }
  app.get(ShutdownState).servers.push({
    ...(transport.isConnected && { isConnected: transport.isConnected }),
    close: async (graceMs) => {
      messages.isRefusing = true;
      await withTimeout(
        transport.stopAccepting().then(() => messages.idle()),
        graceMs,
      );
      messages.disconnectAll();
      await transport.server.close();
    },
  });
  logger.log({ event: 'messages_listening', url: transport.url() });
}

/** Nest counts what arrives in one read, up to 64 KB, together with the message that it completes. */
const BUFFERED_CHARACTERS_MAX = 2 * 64 * 1024;
/** Unsent bytes of one connection. A call waits for its reader, so only many concurrent calls reach this. */
const UNSENT_BYTES_MAX = 32 * 1024 * 1024;
const CONNECTIONS_MAX = 1_024;
/** How much longer than the deadline of a call nothing may be sent or taken, before a connection is closed. */
const IDLE_MARGIN_SECONDS = 60;

/** Nest's TCP server, for a trusted network: it has no encryption, and its limits are per connection. */
function tcpTransport(environment: Environment): Transport {
  const { MESSAGE_HOST: host, MESSAGE_PORT: port, REQUEST_DEADLINE_SECONDS: deadlineSeconds } = environment;
  const options = { maxBufferSize: BUFFERED_CHARACTERS_MAX, maxSendBufferSize: UNSENT_BYTES_MAX };
  const server = new TcpServer({ host, port, ...options });
  const listener = server.unwrap<Server>();
  listener.maxConnections = CONNECTIONS_MAX;
  listener.on('connection', (socket: Socket) => {
    // Each running call adds one.
    socket.setMaxListeners(0);
    socket.setTimeout((deadlineSeconds + IDLE_MARGIN_SECONDS) * 1000, () => socket.destroy());
  });
  return {
    server,
    settings: 'MESSAGE_HOST or MESSAGE_PORT',
    listening: once(listener, 'listening'),
    url: () => {
      const address = listener.address();
      return `tcp://${host}:${typeof address === 'object' && address ? address.port : port}`;
    },
    stopAccepting: () => {
      listener.close();
      return Promise.resolve();
    },
    replyChannel: (context: TcpContext) => {
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
    },
  };
}

/** About 1 KB each. The client cannot stop to read; beyond it messages are refused within the read. */
const WAITING_MAX = 5_000;
/** What Nest adds to an event: the ID of the message and field names. */
const ENVELOPE_BYTES = 1024;

/** NATS, as a member of a queue group. The client reconnects by itself, however long the servers are unavailable. */
function natsTransport({ NATS_URL: urls = [], NATS_QUEUE: queue }: Environment): Transport {
  const servers = urls.map((url) => new URL(url));
  const server = new QueueMember({
    servers: servers.map(({ host }) => host),
    ...credentialsOf(servers[0]),
    ...(servers.some(({ protocol }) => protocol === 'tls:') && { tls: {} }),
    name: 'channel-transcripts',
    queue,
    maxReconnectAttempts: -1,
  });
  return {
    server,
    settings: 'NATS_URL',
    url: () => servers.map(({ protocol, host }) => `${protocol}//${host}`).join(','),
    stopAccepting: () => server.leave(),
    isConnected: () => server.isConnected,
    replyChannel: (context: NatsContext) => {
      const client = server.unwrap<NatsConnection>();
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
    },
  };
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

/** Ignores messages that expect no reply: they would be charged for a response that nobody receives. */
class TcpServer extends ServerTCP {
  private readonly turns = new WeakMap<Socket, Turns>();

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
    if (this.unwrap<Server>().listening) logFault(error);
  };
}

/** Leaves the queue group before the running calls have ended. Nest would leave it when it closes the connection. */
class QueueMember extends ServerNats {
  isConnected = true;
  private readonly joined: Subscription[] = [];
  private readonly turns = new Turns();

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

  /** Resolves when the messages that were received before are being handled. */
  leave(): Promise<void> {
    for (const subscription of this.joined) subscription.unsubscribe();
    return this.turns.last;
  }
}

function credentialsOf(url: URL | undefined): { user?: string; pass?: string; token?: string } {
  const [name, password] = [url?.username ?? '', url?.password ?? ''].map(decodeURIComponent);
  if (name === undefined || name === '') return {};
  return password === undefined || password === '' ? { token: name } : { user: name, pass: password };
}

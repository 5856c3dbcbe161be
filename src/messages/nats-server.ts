import { ServerNats, type IncomingEvent, type NatsContext } from '@nestjs/microservices';
import type { Msg, MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Environment } from '../config/environment.js';
import { withTimeout } from '../domain/with-timeout.js';
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

/** What Nest adds to an event: the ID of the message and field names. */
const ENVELOPE_BYTES = 1024;

/** Receives messages from NATS as a member of a queue group. */
export class NatsMessages extends ServerNats implements MessageServer {
  readonly url: string;
  private readonly activeSubscriptions: Subscription[] = [];
  private readonly faults = new MessageFaults();
  private link: NatsLink | undefined;

  constructor(
    { NATS_URL: urls = [], NATS_QUEUE: queue }: Pick<Environment, 'NATS_URL' | 'NATS_QUEUE'>,
    private readonly limits: MessageLimits = MESSAGE_LIMITS,
  ) {
    const servers = urls.map((url) => new URL(url));
    super({
      servers: servers.map(({ host }) => host),
      ...credentialsOf(servers[0]),
      ...(servers.some(({ protocol }) => protocol === 'tls:') && { tls: {} }),
      name: 'channel-transcripts',
      queue,
      // The client reconnects by itself, however long the servers are unavailable.
      maxReconnectAttempts: -1,
      deserializer: new PacketDeserializer(
        (message) => (message as Msg).json(),
        ({ replyTo }) => replyTo !== undefined && replyTo !== '',
      ),
    });
    this.url = servers.map(({ protocol, host }) => `${protocol}//${host}`).join(',');
  }

  override async listen(callback: (error?: unknown) => void): Promise<void> {
    await super.listen((error?: unknown) =>
      callback(error && new Error(`The NATS server at ${this.url} cannot be used: ${textOf(error)}.`)),
    );
  }

  /** Records the subscriptions of the base class. */
  override bindEvents(client: NatsConnection): void {
    this.link = new NatsLink(client, this.limits);
    const subscribe: NatsConnection['subscribe'] = (subject, options) => {
      const subscription = client.subscribe(subject, options);
      this.activeSubscriptions.push(subscription);
      return subscription;
    };
    super.bindEvents({ subscribe });
  }

  override async handleMessage(channel: string, message: Msg): Promise<unknown> {
    if (message.data.length > this.limits.messageBytesMax) return this.faults.report('message_too_large');
    return super.handleMessage(channel, message);
  }

  override async handleEvent(pattern: string, packet: IncomingEvent, context: NatsContext): Promise<unknown> {
    // The base class logs a line for each.
    if (!this.getHandlerByPattern(pattern)) return this.faults.report('unknown_pattern');
    return super.handleEvent(pattern, packet, context);
  }

  replyChannel(context: NatsContext): ReplyChannel {
    const headers = context.getHeaders() as MsgHdrs | undefined;
    if (!this.link) throw new Error('A message arrived before the subscription.');
    return new NatsReplyChannel(
      this.link,
      traceHeaders((name) => headers?.get(name) || undefined),
    );
  }

  /** Leaves the queue group, so that the other instances receive the next messages. */
  async stopAccepting(): Promise<void> {
    for (const subscription of this.activeSubscriptions) subscription.unsubscribe();
    // Messages that were in transit arrive and are refused before the connection closes.
    await this.link?.flushed();
  }

  protected override handleError(error: unknown): void {
    this.faults.report(error instanceof SyntaxError ? 'not_a_message' : 'transport_error', error);
  }
}

function credentialsOf(url: URL | undefined): { user?: string; pass?: string; token?: string } {
  const [name, password] = [url?.username ?? '', url?.password ?? ''].map(decodeURIComponent);
  if (name === undefined || name === '') return {};
  return password === undefined || password === '' ? { token: name } : { user: name, pass: password };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The connection to the NATS server, shared by all callers. It retains nothing of ended messages. */
class NatsLink extends CallerConnection {
  private flushing: Promise<void> | undefined;
  private nextFlush: Promise<void> | undefined;

  constructor(
    readonly client: NatsConnection,
    private readonly limits: MessageLimits,
  ) {
    super();
    void client.closed().then(() => this.close());
  }

  /**
   * Resolves when the server has received everything published so far, or is unavailable for too long. All callers share
   * one flush: each flush is a request to the server, and without a server the client queues every one.
   */
  flushed(): Promise<void> {
    if (!this.flushing) return (this.flushing = this.flush());
    // The running flush may have started before the last event was published.
    return (this.nextFlush ??= this.flushing.then(() => {
      this.nextFlush = undefined;
      return (this.flushing = this.flush());
    }));
  }

  private async flush(): Promise<void> {
    const { client, limits } = this;
    // Without a server, events wait in this process until it is available again or the deadline of the call passes.
    if (!client.isClosed())
      await withTimeout(
        client.flush().catch(() => undefined),
        limits.stalledReaderMs,
      );
    this.flushing = undefined;
  }
}

/** NATS does not report the progress of a reader. The server disconnects slow ones, so this waits for the server only. */
class NatsReplyChannel implements ReplyChannel {
  /** Callers are connected to the NATS server and not to this process. */
  readonly address = undefined;
  readonly eventBytesMax: number | undefined;

  constructor(
    readonly connection: NatsLink,
    readonly traceHeaders: TraceHeaders,
  ) {
    const { info } = connection.client;
    this.eventBytesMax = info && info.max_payload - ENVELOPE_BYTES;
  }

  async taken(): Promise<void> {
    await nextTurn();
    await this.connection.flushed();
  }
}

import { ServerNats, type IncomingEvent, type NatsContext } from '@nestjs/microservices';
import type { Msg, MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Environment } from '../config/environment.js';
import { ConnectionCalls, PendingMessages, type MessageSlot } from './connection-calls.js';
import { MESSAGE_LIMITS, type MessageLimits } from './message-limits.js';
import { PacketDeserializer } from './message-packet.js';
import { MessageReports } from './message-reports.js';
import type { MessageServer } from './message-server.js';
import { nextTurn, traceHeaders, type ReplyChannel, type TraceHeaders } from './reply-channel.js';

/** Around an event: Nest's id of the message and its field names. */
const ENVELOPE_BYTES = 1024;

/** Takes messages from NATS, as one of a queue group. */
export class NatsMessages extends ServerNats implements MessageServer {
  readonly url: string;
  private readonly taken: Subscription[] = [];
  private readonly reports = new MessageReports();
  private readonly pending = new PendingMessages();
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
      // It comes back by itself, whenever the servers do.
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

  /** Remembers what the base subscribes to. */
  override bindEvents(client: NatsConnection): void {
    this.link = new NatsLink(client, this.pending, this.limits);
    const subscribe: NatsConnection['subscribe'] = (subject, options) => {
      const subscription = client.subscribe(subject, options);
      this.taken.push(subscription);
      return subscription;
    };
    super.bindEvents({ subscribe });
  }

  override async handleMessage(channel: string, message: Msg): Promise<unknown> {
    if (message.data.length > this.limits.messageBytesMax) return this.reports.report('message_too_large');
    return super.handleMessage(channel, message);
  }

  override async handleEvent(pattern: string, packet: IncomingEvent, context: NatsContext): Promise<unknown> {
    // The base logs a line for each.
    if (!this.getHandlerByPattern(pattern)) return this.reports.report('unknown_pattern');
    return super.handleEvent(pattern, packet, context);
  }

  replyChannel(context: NatsContext): ReplyChannel {
    const headers = context.getHeaders() as MsgHdrs | undefined;
    if (!this.link) throw new Error('A message came before the subscription.');
    return new NatsReplyChannel(
      this.link,
      traceHeaders((name) => headers?.get(name) || undefined),
    );
  }

  /** Leaves the queue group, so that the next messages go to the other instances. */
  async stopAccepting(): Promise<void> {
    for (const subscription of this.taken) subscription.unsubscribe();
    // What was on its way here is here, and is refused, before the connection can be closed.
    await this.link?.flushed();
  }

  protected override handleError(error: unknown): void {
    this.reports.report(error instanceof SyntaxError ? 'not_a_message' : 'transport_error', error);
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

/** The connection to the NATS server, behind which all callers are. It holds nothing of a message that has ended. */
class NatsLink {
  readonly calls: ConnectionCalls;
  private flushing: Promise<void> | undefined;
  private following: Promise<void> | undefined;

  constructor(
    readonly connection: NatsConnection,
    pending: PendingMessages,
    readonly limits: MessageLimits,
  ) {
    this.calls = new ConnectionCalls(pending);
    void connection.closed().then(() => this.calls.close());
  }

  /**
   * Waits until the server has taken all that was published so far, or is not there for too long. One flush serves all
   * who wait: each is a request of its own to the server, and without a server the client remembers every one.
   */
  flushed(): Promise<void> {
    if (!this.flushing) return (this.flushing = this.flush());
    // It may have begun before the last was published.
    return (this.following ??= this.flushing.then(() => {
      this.following = undefined;
      return (this.flushing = this.flush());
    }));
  }

  private async flush(): Promise<void> {
    const { connection, limits } = this;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      // Without a server, events wait in this process until one is back or the call's deadline comes.
      timer = setTimeout(resolve, limits.stalledReaderMs).unref();
    });
    if (!connection.isClosed()) await Promise.race([connection.flush().catch(() => undefined), late]);
    clearTimeout(timer);
    this.flushing = undefined;
  }
}

/** NATS tells nothing of the reader: what is waited for is its server, which cuts off a reader who is too slow. */
class NatsReplyChannel implements ReplyChannel {
  /** All callers are behind the server. */
  readonly address = undefined;
  readonly eventBytesMax: number | undefined;

  constructor(
    private readonly link: NatsLink,
    readonly traceHeaders: TraceHeaders,
  ) {
    const { info } = link.connection;
    this.eventBytesMax = info && info.max_payload - ENVELOPE_BYTES;
  }

  get isFull(): boolean {
    return this.link.calls.pendingCount >= this.link.limits.pendingMax;
  }

  begin(disconnect: () => void): MessageSlot {
    return this.link.calls.begin(disconnect);
  }

  async room(): Promise<void> {
    await this.flushed();
  }

  async flushed(): Promise<void> {
    await nextTurn();
    await this.link.flushed();
  }
}

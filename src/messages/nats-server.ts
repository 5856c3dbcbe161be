import { NatsRequestJSONDeserializer, ServerNats, type NatsContext } from '@nestjs/microservices';
import type { MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Environment } from '../config/environment.js';
import { AnsweredOnly } from './answered-only.js';
import type { MessageServer } from './message-server.js';
import { handedOver, STALLED_READER_MS, traceHeaders, type Outlet, type TraceHeaders } from './outlet.js';

/** Around an event: Nest's id of the message and its field names. */
const ENVELOPE_BYTES = 256;

/** Takes messages from NATS, as one of a queue group. */
export class NatsMessages extends ServerNats implements MessageServer {
  readonly url: string;
  private readonly taken: Subscription[] = [];

  constructor({ NATS_URL: urls = [], NATS_QUEUE: queue }: Environment) {
    const servers = urls.map((url) => new URL(url));
    super({
      servers: servers.map(({ host }) => host),
      ...credentialsOf(servers[0]),
      ...(servers.some(({ protocol }) => protocol === 'tls:') && { tls: {} }),
      name: 'channel-transcripts',
      queue,
      // It comes back by itself, whenever the servers do.
      maxReconnectAttempts: -1,
      deserializer: new AnsweredOnly(
        new NatsRequestJSONDeserializer(),
        (options) => options?.['replyTo'] !== undefined && options['replyTo'] !== '',
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
    const subscribe: NatsConnection['subscribe'] = (subject, options) => {
      const subscription = client.subscribe(subject, options);
      this.taken.push(subscription);
      return subscription;
    };
    super.bindEvents({ subscribe });
  }

  outlet(context: NatsContext): Outlet {
    const headers = context.getHeaders() as MsgHdrs | undefined;
    return new NatsOutlet(
      this.unwrap<NatsConnection>(),
      traceHeaders((name) => headers?.get(name) || undefined),
    );
  }

  /** Leaves the queue group, so that the next messages go to the other instances. */
  async takeNoMore(): Promise<void> {
    for (const subscription of this.taken) subscription.unsubscribe();
    // What was on its way here is here, and is refused, before the connection can be closed.
    await Promise.race([
      this.unwrap<NatsConnection>()
        .flush()
        .catch(() => undefined),
      later(STALLED_READER_MS),
    ]);
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

/** NATS tells nothing of the reader: what is waited for is its server, which cuts off a reader who is too slow. */
class NatsOutlet implements Outlet {
  /** All callers are behind the server. */
  readonly address = undefined;
  readonly eventBytesMax: number | undefined;

  constructor(
    private readonly connection: NatsConnection,
    readonly traceHeaders: TraceHeaders,
  ) {
    const { info } = connection;
    this.eventBytesMax = info && info.max_payload - ENVELOPE_BYTES;
  }

  get gone(): boolean {
    return this.connection.isClosed();
  }

  onGone(told: () => void): void {
    void this.connection.closed().then(told);
  }

  async room(): Promise<void> {
    await this.flushed();
  }

  async flushed(): Promise<void> {
    await handedOver();
    if (this.gone) return;
    // Without a server, events wait in this process until one is back or the call's deadline comes.
    await Promise.race([this.connection.flush().catch(() => undefined), later(STALLED_READER_MS)]);
  }
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

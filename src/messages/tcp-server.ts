import type { Server, Socket } from 'node:net';
import { IncomingRequestDeserializer, ServerTCP, type TcpContext } from '@nestjs/microservices';
import type { Environment } from '../config/environment.js';
import { AnsweredOnly } from './answered-only.js';
import type { MessageServer } from './message-server.js';
import { handedOver, STALLED_READER_MS, traceHeaders, type Outlet, type TraceHeaders } from './outlet.js';

/** Of what one connection has sent and is not read yet; a message has a few hundred. */
const INCOMING_CHARACTERS_MAX = 1024 * 1024;
/** Of what waits for one connection; each call waits for its reader, so that only many calls at once come to this. */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;

/** Takes messages over TCP. */
export class TcpMessages extends ServerTCP implements MessageServer {
  private listening = false;

  constructor({ MESSAGE_HOST: host, MESSAGE_PORT: port }: Environment) {
    super({
      host,
      port,
      maxBufferSize: INCOMING_CHARACTERS_MAX,
      maxSendBufferSize: WAITING_BYTES_MAX,
      deserializer: new AnsweredOnly(new IncomingRequestDeserializer(), () => true),
    });
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
      callback();
    });
  }

  outlet(context: TcpContext): Outlet {
    const metadata = context.getMetadata() ?? {};
    return new TcpOutlet(
      context.getSocketRef().netSocket,
      traceHeaders((name) => Reflect.get(metadata, name)),
    );
  }

  takeNoMore(): Promise<void> {
    this.unwrap<Server>().close();
    return Promise.resolve();
  }

  protected override handleError(error: string): void {
    if (this.listening) super.handleError(error);
  }
}

class TcpOutlet implements Outlet {
  readonly address: string | undefined;
  readonly eventBytesMax = undefined;

  constructor(
    private readonly socket: Socket,
    readonly traceHeaders: TraceHeaders,
  ) {
    this.address = socket.remoteAddress;
  }

  get gone(): boolean {
    return this.socket.destroyed;
  }

  onGone(told: () => void): void {
    if (this.gone) told();
    else this.socket.once('close', told);
  }

  async room(): Promise<void> {
    await handedOver();
    const { socket } = this;
    while (socket.writableNeedDrain && !socket.destroyed) await this.untilTaken((go) => socket.once('drain', go));
  }

  async flushed(): Promise<void> {
    await handedOver();
    // Nothing, behind all that waits: what is told of it is that the rest has gone.
    if (!this.gone) await this.untilTaken((go) => this.socket.write('', go));
  }

  /** Node counts the bytes that leave a socket as activity, so that only a reader who takes nothing runs into the time. */
  private async untilTaken(wait: (go: () => void) => unknown): Promise<void> {
    const { socket } = this;
    const stalled = (): unknown => socket.destroy();
    waiters.set(socket, (waiters.get(socket) ?? 0) + 1);
    socket.setTimeout(STALLED_READER_MS).once('timeout', stalled);
    let go: () => void = () => undefined;
    await new Promise<void>((resolve) => {
      go = resolve;
      socket.once('close', go);
      wait(go);
    });
    socket.off('close', go).off('drain', go).off('timeout', stalled);
    const others = (waiters.get(socket) ?? 1) - 1;
    waiters.set(socket, others);
    if (others === 0) socket.setTimeout(0);
  }
}

/** How many calls wait for the reader of a connection: the time that it is given ends with the last of them. */
const waiters = new WeakMap<Socket, number>();

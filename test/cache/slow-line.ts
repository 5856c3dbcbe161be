import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

const TICK_MS = 10;

/** A TCP relay in front of a server, whose replies arrive at a limited rate. */
export class SlowLine {
  private readonly sockets = new Set<Socket>();
  private readonly timer: NodeJS.Timeout;
  private readonly waiting = new Map<Socket, Buffer[]>();
  private relayedAtMs = performance.now();
  /** Bytes of replies that were relayed. */
  relayedBytes = 0;

  private constructor(
    private readonly server: Server,
    private readonly bytesPerSecond: number,
  ) {
    this.timer = setInterval(() => this.relay(), TICK_MS);
  }

  static async open(target: string, bytesPerSecond: number): Promise<SlowLine> {
    const { hostname, port } = new URL(target);
    const server = createServer();
    const line = new SlowLine(server, bytesPerSecond);
    server.on('connection', (client) => line.join(client, connect(Number(port), hostname)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return line;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private join(client: Socket, server: Socket): void {
    this.waiting.set(client, []);
    client.pipe(server);
    server.on('data', (bytes: Buffer) => this.waiting.get(client)?.push(bytes));
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.waiting.delete(client);
        client.destroy();
        server.destroy();
      });
    }
  }

  /** The rate is that of the line, whatever the number of connections. */
  private relay(): void {
    const now = performance.now();
    // By the time since the last tick: a busy machine does not make the line slower.
    let room = Math.ceil((this.bytesPerSecond * (now - this.relayedAtMs)) / 1000);
    this.relayedAtMs = now;
    for (const [client, queue] of this.waiting)
      for (let next = queue.shift(); next; next = queue.shift()) {
        const part = next.subarray(0, room);
        client.write(part);
        room -= part.length;
        this.relayedBytes += part.length;
        if (part.length === next.length) continue;
        queue.unshift(next.subarray(part.length));
        break;
      }
  }
}

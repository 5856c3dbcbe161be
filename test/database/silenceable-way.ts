import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A way to the database on which connections can be made to go silent, as when a machine vanishes. */
export class SilenceableWay {
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async to(target: string): Promise<SilenceableWay> {
    const { hostname, port } = new URL(target);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(target);
    url.port = String((server.address() as AddressInfo).port);
    const way = new SilenceableWay(server, url.href);
    server.on('connection', (near) => {
      const far = connect(Number(port), hostname);
      for (const socket of [near, far]) way.sockets.add(socket.on('error', () => undefined));
      near.pipe(far).pipe(near);
    });
    return way;
  }

  /** New connections work. */
  silence(): void {
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

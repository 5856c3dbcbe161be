import { createServer, type AddressInfo } from 'node:net';

/** A listener on the loopback interface whose URL is part of hostile requests; a connection shows that one was followed. */
export class Canary {
  contacts = 0;

  private constructor(
    readonly address: string,
    readonly close: () => void,
  ) {}

  static async start(): Promise<Canary> {
    const server = createServer((socket) => {
      canary.contacts += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const canary = new Canary(`127.0.0.1:${port}`, () => server.close());
    return canary;
  }
}

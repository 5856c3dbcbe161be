import { createServer, type AddressInfo } from 'node:net';

/** Listens on an address that no one may connect to: a connection shows that a URL of it was followed. */
export class Canary {
  contacts = 0;
  private readonly server = createServer((socket) => {
    this.contacts += 1;
    socket.destroy();
  });

  static async start(): Promise<Canary> {
    const canary = new Canary();
    await new Promise<void>((resolve) => canary.server.listen(0, resolve));
    return canary;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Its URLs in every notation, and others that no one may follow. */
  get locations(): readonly string[] {
    const { port } = this;
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '127.1', '0.0.0.0', '[::ffff:127.0.0.1]'];
    return [
      ...hosts.flatMap((host) => [`http://${host}:${port}/`, `https://${host}:${port}/`]),
      `//127.0.0.1:${port}/youtubei/v1/player`,
      `http://www.youtube.com@127.0.0.1:${port}/`,
      `https://www.youtube.com:${port}/`,
      `http://127.0.0.1:${port}\\@www.youtube.com/`,
      'http://169.254.169.254/latest/meta-data/',
      'file:///etc/passwd',
    ];
  }

  close(): void {
    this.server.close();
  }

  private get port(): number {
    return (this.server.address() as AddressInfo).port;
  }
}

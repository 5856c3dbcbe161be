import { createServer, type AddressInfo } from 'node:net';

/** Listens on an address that no one may connect to, under every name of it. */
export interface Canary {
  /** Its URLs in every notation. */
  locations: readonly string[];
  /** Number of connections. */
  contacts(): number;
  close(): Promise<void>;
}

export async function startCanary(): Promise<Canary> {
  let contacts = 0;
  const server = createServer((socket) => {
    contacts += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  const hosts = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '127.1', '0.0.0.0', '[::ffff:127.0.0.1]'];
  return {
    locations: [
      ...hosts.flatMap((host) => [`http://${host}:${port}/`, `https://${host}:${port}/`]),
      `//127.0.0.1:${port}/youtubei/v1/player`,
      `http://www.youtube.com@127.0.0.1:${port}/`,
      `https://www.youtube.com:${port}/`,
      `http://127.0.0.1:${port}\\@www.youtube.com/`,
      'http://169.254.169.254/latest/meta-data/',
      'file:///etc/passwd',
    ],
    contacts: () => contacts,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

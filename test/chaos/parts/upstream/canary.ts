import { createServer, type AddressInfo } from 'node:net';

/** Listens where nobody may ever connect, under every name that leads here. */
export interface Canary {
  /** Addresses of it, as something that wants to be fetched would write them. */
  locations: readonly string[];
  /** How often somebody connected. */
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

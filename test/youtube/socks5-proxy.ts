import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A SOCKS5 proxy (RFC 1928) with user name and password (RFC 1929), for CONNECT to host names and IPv4 addresses. */
interface Socks5Proxy {
  /** For `UPSTREAM_PROXY_URL`. */
  url: string;
  /** The hosts that were connected to. */
  hosts: string[];
  close(): Promise<void>;
}

const [VERSION, USER_AND_PASSWORD, CONNECT, HOST_NAME] = [5, 2, 1, 3];

export async function startSocks5Proxy(user: string, password: string): Promise<Socks5Proxy> {
  const sockets = new Set<Socket>();
  const hosts: string[] = [];
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    void serve(client).catch(() => client.destroy());
  });

  async function serve(client: Socket): Promise<void> {
    const read = reader(client);
    const [, methods = 0] = await read(2);
    await read(methods);
    client.write(Buffer.from([VERSION, USER_AND_PASSWORD]));
    const [, userLength = 0] = await read(2);
    const givenUser = (await read(userLength)).toString();
    const [passwordLength = 0] = await read(1);
    const accepted = givenUser === user && (await read(passwordLength)).toString() === password;
    client.write(Buffer.from([1, accepted ? 0 : 1]));
    if (!accepted) throw new Error('The user name or the password is wrong.');
    const [, command, , addressType] = await read(4);
    if (command !== CONNECT) throw new Error('Only CONNECT is supported.');
    const host =
      addressType === HOST_NAME ? (await read((await read(1))[0] ?? 0)).toString() : (await read(4)).join('.');
    const port = (await read(2)).readUInt16BE();
    hosts.push(host);
    const upstream = connect(port, host);
    sockets.add(upstream);
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
    await once(upstream, 'connect');
    client.write(Buffer.from([VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    client.pipe(upstream).pipe(client);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `socks5://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${port}`,
    hosts,
    close: async () => {
      const closed = once(server, 'close');
      for (const socket of sockets) socket.destroy();
      server.close();
      await closed;
    },
  };
}

/** Reads exact numbers of bytes, and leaves the rest to the next reader of the socket. */
function reader(socket: Socket): (length: number) => Promise<Buffer> {
  return async (length) => {
    for (;;) {
      const bytes = length === 0 ? Buffer.alloc(0) : (socket.read(length) as Buffer | null);
      if (bytes) return bytes;
      if (socket.destroyed) throw new Error('The connection was closed.');
      await once(socket, 'readable');
    }
  };
}

import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { once } from 'node:events';

export interface GatewayOptions {
  /** Where every tunnel leads, e.g. the host of the fake YouTube; default: where the client asks for. */
  target?: string;
  /** The loopback address from which a session's connections come; default: one of its own for each. */
  addressOf?: (session: string) => string;
}

/**
 * A rotating gateway: an HTTP proxy (CONNECT) whose user name `operator-session-<session>` chooses the address from which
 * the platform is contacted. A connection without a session gets a new address.
 */
export interface Gateway {
  /** For `UPSTREAM_PROXY_URL`, with `{session}`. */
  url: string;
  /** The user names and passwords that were sent. */
  credentials: ReadonlySet<string>;
  /** Tunnels opened, by session; the key of connections without one is empty. */
  tunnels: ReadonlyMap<string, number>;
  /** Sessions, in order of their first tunnel. */
  sessions: readonly string[];
  addressOf(session: string): string;
  close(): Promise<void>;
}

/** Starts a gateway on 127.0.0.1; its addresses are loopback addresses, 127.16.0.1 and upwards. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const addresses = new Map<string, string>();
  const tunnels = new Map<string, number>();
  const sockets = new Set<Socket>();
  const credentials = new Set<string>();
  let issued = 0;
  const nextAddress = (): string => {
    issued += 1;
    return `127.${16 + ((issued >> 16) & 15)}.${(issued >> 8) & 255}.${issued & 255}`;
  };
  const addressOf = (session: string): string => {
    const address = addresses.get(session) ?? options.addressOf?.(session) ?? nextAddress();
    if (session !== '') addresses.set(session, address);
    return address;
  };
  const server: Server = createServer();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('connect', (request, client: Socket) => {
    const given = Buffer.from(
      request.headers['proxy-authorization']?.replace(/^Basic /, '') ?? '',
      'base64',
    ).toString();
    credentials.add(given);
    const session = /-session-([^:]*)/.exec(given)?.[1] ?? '';
    tunnels.set(session, (tunnels.get(session) ?? 0) + 1);
    const [host = '', port = ''] = (options.target ?? request.url ?? '').split(':');
    const upstream = connect({ host, port: Number(port), localAddress: addressOf(session) }, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    sockets.add(upstream);
    upstream.on('error', () => client.destroy());
    upstream.on('close', () => sockets.delete(upstream));
    client.on('close', () => upstream.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://operator-session-{session}:secret@127.0.0.1:${port}`,
    tunnels,
    credentials,
    get sessions() {
      return [...tunnels.keys()];
    },
    addressOf,
    close: async () => {
      const closed = once(server, 'close');
      for (const socket of sockets) socket.destroy();
      server.close();
      await closed;
    },
  };
}

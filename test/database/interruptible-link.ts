import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy that can be cut and restored, or stop forwarding, as when a machine vanishes. */
export interface InterruptibleLink {
  /** The server's URL with this link's address in it. */
  url: string;
  /** Breaks every connection and refuses new ones. */
  cut(): void;
  join(): void;
  /** Stops the traffic of open connections without closing them; new ones work. */
  silence(): void;
  close(): Promise<void>;
}

/** Puts a link in front of the server of a URL. */
export async function interruptibleLink(serverUrl: string): Promise<InterruptibleLink> {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let severed = false;
  const server = createServer((near) => {
    if (severed) {
      near.resetAndDestroy();
      return;
    }
    const far = connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const breakAll = (): void => sockets.forEach((socket) => socket.resetAndDestroy());
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    cut: () => {
      severed = true;
      breakAll();
    },
    join: () => {
      severed = false;
    },
    silence: () => sockets.forEach((socket) => socket.unpipe().pause()),
    close: async () => {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

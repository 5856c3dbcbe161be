import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';

/** Longer than proxies keep a connection to a server (60 s by default), so that it is never closed under their request. */
const KEEP_ALIVE_MS = 75_000;
/** How long the head of a request may take to arrive, from the connection or its first byte on. */
const HEADERS_MS = 15_000;
/** How long a request may take to arrive whole; the largest body is 16 KB. */
const REQUEST_MS = 30_000;
/** How often requests that take too long are looked for. */
const CHECK_MS = 1_000;
/** How often connections that have become idle are closed while the server closes. */
const SWEEP_MS = 250;

/** Follows every open connection of the server, so that each ends when it should and what it carries is told. */
@Injectable()
export class Connections {
  /** Connections on which no request has come yet. */
  private readonly unused = new Set<Socket>();
  /** The answers that are under way on each connection, the oldest first: that one has the socket, the others wait. */
  private readonly answers = new WeakMap<Socket, Set<ServerResponse>>();

  /** Begins to follow; before any other listener of the server's requests. */
  follow(server: Server): void {
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = REQUEST_MS;
    // Node would drop those past its count without a word; `refuseTooManyHeaders` says so.
    server.maxHeadersCount = 0;
    Object.assign(server, { connectionsCheckingInterval: CHECK_MS });
    server.on('connection', (socket: Socket) => {
      this.unused.add(socket);
      socket.once('close', () => this.unused.delete(socket));
    });
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.unused.delete(socket);
      const answers = this.answersOn(socket);
      answers.add(response);
      response.once('close', () => answers.delete(response));
    });
  }

  /** Whether bytes of an answer may be on the wire already, so that nothing else may be written between them. */
  hasBegunAnAnswer(socket: Socket): boolean {
    const [oldest] = this.answers.get(socket) ?? [];
    return oldest?.headersSent ?? false;
  }

  /**
   * Takes no new connections, and resolves when the open ones have ended: those in use with their answers, the others at
   * once. Node alone would wait for every connection on which nothing was ever asked.
   *
   * @param graceMs after which the connections that are still open are cut off
   */
  async close(server: Server, graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      for (const socket of this.unused) socket.destroy();
    }, SWEEP_MS);
    const cutOff = setTimeout(() => server.closeAllConnections(), graceMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(cutOff);
  }

  private answersOn(socket: Socket): Set<ServerResponse> {
    const known = this.answers.get(socket);
    if (known) return known;
    const answers = new Set<ServerResponse>();
    this.answers.set(socket, answers);
    socket.once('close', () => abandon(answers));
    return answers;
  }
}

/** Node tells the end of a connection to the answer that has its socket only; those that wait behind it are told here. */
function abandon(answers: ReadonlySet<ServerResponse>): void {
  for (const response of [...answers]) {
    if (response.socket) continue;
    response.destroy();
    response.emit('close');
  }
}

import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { withTimeout } from '../domain/with-timeout.js';

/** Longer than the keep-alive of proxies (60 s by default), so that no connection closes while they send a request on it. */
const KEEP_ALIVE_MS = 75_000;
/** For the request line and the headers to arrive, from the connection or the first byte on. */
const HEADERS_MS = 15_000;
/** For a complete request to arrive; the largest body is 64 KB, of `/mcp`. */
const REQUEST_MS = 30_000;
/** Interval at which Node enforces the two timeouts above. */
const CHECK_MS = 1_000;
/** The last response has `Connection: close`; Node answers further requests with 503, which bounds what a client can pipeline. */
const REQUESTS_PER_CONNECTION_MAX = 1_000;
/** A reader that takes nothing of what waits for it for this long is disconnected, a tenth of it later at most. */
const STALLED_READER_MS = 30_000;
const STALL_CHECKS = 10;

/** Sets the limits of Node, and disconnects readers that take nothing. Tests: `test/http/connections.e2e-spec.ts`. */
export function limitConnections(server: Server, stalledReaderMs = STALLED_READER_MS): void {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = HEADERS_MS;
  server.requestTimeout = REQUEST_MS;
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX;
  Object.assign(server, { connectionsCheckingInterval: CHECK_MS });
  // Node destroys a connection after this time without activity, unless its response has a listener for the event.
  server.timeout = stalledReaderMs;
  const checkMs = stalledReaderMs / STALL_CHECKS;
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    let [checks, checkedAtMs] = [0, 0];
    socket.setTimeout(checkMs);
    response.on('timeout', () => {
      const nowMs = performance.now();
      // After a check in which the reader took something Node waits once more, without an event.
      checks = nowMs - checkedAtMs < 1.5 * checkMs ? checks + 1 : 1;
      checkedAtMs = nowMs;
      // Without unsent bytes the service itself waits, for YouTube or the database.
      if (socket.writableLength > 0 && checks >= STALL_CHECKS) socket.destroy();
      else socket.setTimeout(checkMs);
    });
  });
}

/** The responses in progress, one on a connection at most. */
@Injectable()
export class Connections {
  private readonly running = new Set<Response>();
  /** The response to the last request that arrived. */
  private readonly last = new WeakMap<Socket, Response>();

  /**
   * First middleware: handles the requests of a connection one after the other. Node emits 'close' only for the response
   * that it is writing: a pipelined call would hold its slot, and a file stay open, after the connection has closed.
   */
  readonly sequentially = (request: Request, response: Response, next: NextFunction): void => {
    const { socket } = request;
    const previous = this.last.get(socket);
    this.last.set(socket, response);
    const start = (): void => {
      if (socket.destroyed) return;
      this.running.add(response);
      response.once('close', () => this.running.delete(response));
      next();
    };
    if (!previous || previous.closed) start();
    else previous.once('close', start);
  };

  /** Whether a response has been started on a connection, so that nothing else can be written to it. */
  isResponding(socket: Socket): boolean {
    return [...this.running].some((response) => response.socket === socket && response.headersSent);
  }

  /**
   * Stops accepting connections, and resolves when all have closed, after their running responses.
   *
   * @param graceMs the time after which open connections are destroyed
   */
  async close(server: Server, graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await withTimeout(this.idle(), graceMs);
    server.closeAllConnections();
    await closed;
  }

  private async idle(): Promise<void> {
    while (this.running.size > 0) {
      await Promise.all([...this.running].map((response) => once(response, 'close')));
    }
  }
}

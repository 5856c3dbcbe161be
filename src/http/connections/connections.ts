import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { Connection, SILENT_CHECKS_MAX } from './connection.js';

/** Longer than the keep-alive of proxies (60 s by default), so that no connection closes while they send a request on it. */
const KEEP_ALIVE_MS = 75_000;
/** For the request line and the headers to arrive, from the connection or the first byte on. */
const HEADERS_MS = 15_000;
/** For a complete request to arrive; the largest body is 64 KB, of `/mcp`. */
const REQUEST_MS = 30_000;
/** Interval at which Node enforces the two timeouts above. */
const CHECK_MS = 1_000;
/** Interval at which idle connections are closed while the server closes. */
const SWEEP_MS = 250;
/** A reader that reads nothing of a response for this long is stalled, and its connection is destroyed. */
const STALLED_READER_MS = 30_000;

const TRANSCRIPTS = /\/transcripts?$/;

/** Tracks the open connections of the server and the responses in progress on them. */
@Injectable()
export class Connections {
  private readonly open = new Map<Socket, Connection>();

  /**
   * First middleware: handles pipelined requests sequentially, except calls for transcripts, which take seconds and have
   * a concurrency limit. Otherwise one connection could buffer a thousand responses, and a static file would stay open
   * forever, because Express does not detect that the connection of a queued response has closed.
   */
  readonly sequentially = (request: Request, response: Response, next: NextFunction): void => {
    if (TRANSCRIPTS.test(request.path)) next();
    else this.connectionOf(request.socket).whenOldest(response, next);
  };

  /**
   * Starts tracking. Must run before any other listener for requests is added.
   *
   * @param stalledReaderMs a stalled reader is disconnected after this time, or up to two tenths of it later
   */
  track(server: Server, stalledReaderMs = STALLED_READER_MS): void {
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = REQUEST_MS;
    // Node would silently drop headers beyond its maximum; `rejectTooManyHeaders` responds with an error.
    server.maxHeadersCount = 0;
    Object.assign(server, { connectionsCheckingInterval: CHECK_MS });
    server.on('connection', (socket: Socket) => this.connectionOf(socket));
    const add = ({ socket }: IncomingMessage, response: ServerResponse): void =>
      this.connectionOf(socket).add(response);
    server.prependListener('request', add);
    server.prependListener('checkExpectation', add);
    // Without a listener Node destroys a socket whose timer expires; `Connection` decides instead.
    server.on('timeout', () => undefined);
    this.checkReaders(server, stalledReaderMs / SILENT_CHECKS_MAX);
  }

  /**
   * Refuses a request that cannot be parsed, after the responses to the earlier requests. Only the first refusal on a
   * connection has an effect.
   *
   * @param write writes the response and ends the connection
   */
  refuse(socket: Socket, write: () => void): void {
    this.connectionOf(socket).refuse(write);
  }

  /**
   * Stops accepting connections, and resolves when all have closed: those in use after their responses, the others
   * immediately. Node alone would wait for connections on which no request was ever sent.
   *
   * @param graceMs the time after which open connections are destroyed
   */
  async close(server: Server, graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      for (const [socket, { used }] of this.open) if (!used) socket.destroy();
    }, SWEEP_MS);
    const destroyAll = setTimeout(() => {
      for (const socket of this.open.keys()) socket.destroy();
    }, graceMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(destroyAll);
  }

  private connectionOf(socket: Socket): Connection {
    const known = this.open.get(socket);
    if (known) return known;
    const connection = new Connection(socket);
    this.open.set(socket, connection);
    socket.once('close', () => this.open.delete(socket));
    return connection;
  }

  private checkReaders(server: Server, intervalMs: number): void {
    server.once('listening', () => {
      const checks = setInterval(() => {
        for (const connection of this.open.values()) connection.checkReader(intervalMs);
      }, intervalMs);
      checks.unref();
      server.once('close', () => clearInterval(checks));
    });
  }
}

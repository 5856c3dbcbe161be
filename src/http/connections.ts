import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { Connection, SILENT_CHECKS_MAX } from './connection.js';

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
/** How long a reader may take nothing of a response before its connection is destroyed. */
const STALLED_READER_MS = 30_000;

const CALL = /\/transcripts$/;

/** Follows every open connection of the server and the responses on it, so that each ends when it should. */
@Injectable()
export class Connections {
  private readonly open = new Map<Socket, Connection>();

  /**
   * First middleware: handles pipelined requests one after the other, except calls for transcripts, which take seconds and
   * are bounded by themselves. Otherwise one connection could have a thousand responses made that nobody reads yet; and a
   * file would stay open for ever, because Express never learns that the connection of a queued response has closed.
   */
  readonly inTurn = (request: Request, response: Response, next: NextFunction): void => {
    if (CALL.test(request.path)) next();
    else this.connectionOf(request.socket).onTurn(response, next);
  };

  /**
   * Begins to follow; before any other listener of the server's requests.
   *
   * @param stalledReaderMs how long a reader may take nothing, on any route, before its connection is destroyed; it is
   * found out up to two tenths of that later
   */
  follow(server: Server, stalledReaderMs = STALLED_READER_MS): void {
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = REQUEST_MS;
    // Node would drop those past its count without a word; `refuseTooManyHeaders` says so.
    server.maxHeadersCount = 0;
    Object.assign(server, { connectionsCheckingInterval: CHECK_MS });
    server.on('connection', (socket: Socket) => this.connectionOf(socket));
    const begin = ({ socket }: IncomingMessage, response: ServerResponse): void =>
      this.connectionOf(socket).add(response);
    server.prependListener('request', begin);
    server.prependListener('checkExpectation', begin);
    // Without a listener Node destroys a socket whose timer runs out; here `Connection` decides.
    server.on('timeout', () => undefined);
    this.checkReaders(server, stalledReaderMs / SILENT_CHECKS_MAX);
  }

  /**
   * Refuses what cannot be read as a request, after the responses to the requests before it. Of several refusals on one
   * connection the first counts.
   *
   * @param write writes the refusal and ends the connection
   */
  refuse(socket: Socket, write: () => void): void {
    this.connectionOf(socket).refuse(write);
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
      for (const [socket, { used }] of this.open) if (!used) socket.destroy();
    }, SWEEP_MS);
    const cutOff = setTimeout(() => {
      for (const socket of this.open.keys()) socket.destroy();
    }, graceMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(cutOff);
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

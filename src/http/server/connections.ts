import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readFile } from 'node:fs/promises';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { ServiceUnavailableError } from '../../domain/errors.js';
import { RefusedRequestError } from '../errors/http-errors.js';
import { withTimeout } from '../../domain/waiting.js';
import { errorBody } from '../errors/error-body.js';
import { Routes } from '../routes/routes.js';

/** Longer than the keep-alive of proxies (60 s by default), so that no connection closes while they send a request on it. */
const KEEP_ALIVE_MS = 75_000;
/** For the request line and the headers to arrive, from the connection or the first byte on. */
const HEADERS_MS = 15_000;
/** For a complete request to arrive; the largest body is 1 MB, of a new job. */
const REQUEST_MS = 30_000;
/** Interval at which Node enforces the two timeouts above. */
const CHECK_MS = 1_000;
/** The last response has `Connection: close`; Node answers further requests with 503, which bounds what a client can pipeline. */
const REQUESTS_PER_CONNECTION_MAX = 1_000;
/** Of the requests that wait behind others on a connection. Nothing else sends as many at once as to need this. */
const PIPELINED_CHARACTERS_MAX = 64 * 1024;
/** A reader that takes nothing of what waits for it for this long is disconnected, after twice this time at most. */
const STALLED_READER_MS = 30_000;
/** How often it is looked within that time whether a reader has taken something. */
const LOOKS = 3;

/** Sets the limits of Node, and disconnects readers that take nothing. Tests: `test/http/connections.e2e-spec.ts`. */
export function limitConnections(server: Server, stalledReaderMs = STALLED_READER_MS): void {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = HEADERS_MS;
  server.requestTimeout = REQUEST_MS;
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX;
  Object.assign(server, { connectionsCheckingInterval: CHECK_MS });
  // Node destroys a connection after this time without activity, unless its response has a listener for the event.
  server.timeout = stalledReaderMs;
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    socket.setTimeout(stalledReaderMs / LOOKS);
    let last = { taken: '', atMs: 0 };
    response.on('timeout', () => {
      // Without unsent bytes the service itself waits, for YouTube or the database.
      if (socket.writableLength === 0) return;
      void takenOf(socket).then((taken) => {
        const nowMs = performance.now();
        if (taken !== last.taken) last = { taken, atMs: nowMs };
        if (nowMs - last.atMs >= stalledReaderMs) socket.destroy();
        else socket.setTimeout(stalledReaderMs / LOOKS);
      });
    });
  });
}

/** For the first request on a connection that was accepted before the listener closed; a proxy does not repeat a POST. */
const LAST_REQUESTS_MS = 1_000;

/** The responses in progress, one on a connection at most. */
@Injectable()
export class Connections {
  private readonly running = new Set<Response>();
  /** The response to the last request that arrived, and the size of the requests that wait for their turns. */
  private readonly queues = new WeakMap<Socket, { last: Response | undefined; characters: number }>();

  /**
   * First middleware: handles the requests of a connection one after the other. Node emits 'close' only for the response
   * that it is writing: a pipelined call would hold its slot, and a file stay open, after the connection has closed.
   */
  readonly sequentially = (request: Request, response: Response, next: NextFunction): void => {
    const { socket } = request;
    const queue = this.queues.get(socket) ?? { last: undefined, characters: 0 };
    this.queues.set(socket, queue);
    const previous = queue.last;
    queue.last = response;
    const start = (): void => {
      if (socket.destroyed) return;
      this.running.add(response);
      response.once('close', () => this.running.delete(response));
      next();
    };
    if (!previous || previous.closed) {
      start();
      return;
    }
    const size = request.url.length + request.rawHeaders.join('').length;
    queue.characters += size;
    if (queue.characters > PIPELINED_CHARACTERS_MAX) socket.destroy();
    previous.once('close', () => {
      queue.characters -= size;
      start();
    });
  };

  /** Whether a response has been started on a connection, so that nothing else can be written to it. */
  isResponding(socket: Socket): boolean {
    return [...this.running].some((response) => response.socket === socket && response.headersSent);
  }

  /**
   * Stops accepting connections, and resolves when all have closed, after their running responses.
   *
   * @param graceMs the time after which open connections are destroyed
   * @param refuse called when the requests of the connections that were accepted last have had time to arrive
   */
  async close(server: Server, graceMs: number, refuse: () => void): Promise<void> {
    // Right after the phase of the event loop that accepts connections: those that are not accepted yet would be reset.
    await nextTurn();
    // That of an HTTP server would also end connections on which no request has arrived yet (Node 26).
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
    await withTimeout(closed, Math.min(LAST_REQUESTS_MS, graceMs));
    // Their proxies have had the time to see the responses that end connections.
    server.closeIdleConnections();
    refuse();
    await withTimeout(this.idle(), graceMs - LAST_REQUESTS_MS);
    server.closeAllConnections();
    await closed;
  }

  private async idle(): Promise<void> {
    while (this.running.size > 0) {
      await Promise.all([...this.running].map((response) => once(response, 'close')));
    }
  }
}

const RETRY_AFTER_SECONDS = 5;

/** A server beside HTTP, which closes together with it. */
export interface ClosingServer {
  /** Whether it is connected to the broker that it receives its calls from; absent when it needs none. */
  isConnected?: () => boolean;
  /** Stops accepting calls, waits up to `graceMs` for the running ones, and aborts the rest. */
  close(graceMs: number): Promise<void>;
}

@Injectable()
export class ShutdownState {
  /** Readiness fails. Requests are still served until the load balancer has noticed. */
  stopping = false;
  /** Requests are refused. No connection is accepted any more, and those that were have had time for a request. */
  refusing = false;
  readonly servers: ClosingServer[] = [];

  constructor(private readonly routes: Routes) {}

  /**
   * Middleware: while stopping, closes each connection after its response, so that the next request reaches another
   * instance; then refuses requests on connections that are still open. Probes are served until the end.
   */
  readonly refuse = (request: Request, response: Response, next: NextFunction): void => {
    if (this.stopping) response.setHeader('Connection', 'close');
    if (!this.refusing || this.routes.isProbe(request.path)) {
      next();
      return;
    }
    next(this.refusal());
  };

  refusal(): ServiceUnavailableError {
    return new ServiceUnavailableError(
      'The service is shutting down. Retry shortly to reach another instance.',
      RETRY_AFTER_SECONDS,
    );
  }
}

const MALFORMED = new RefusedRequestError(400, 'request', 'The request is not well-formed HTTP.');
const REFUSALS: Record<string, RefusedRequestError> = {
  HPE_HEADER_OVERFLOW: new RefusedRequestError(431, 'request', 'The request line and the headers are too large.'),
  HPE_INVALID_URL: new RefusedRequestError(400, 'request', 'The URL contains characters that must be percent-encoded.'),
  ERR_HTTP_REQUEST_TIMEOUT: new RefusedRequestError(408, 'request', 'The request did not arrive in time.'),
};

/** Sends the error envelope for requests that Node rejects before any middleware runs, and logs them. */
export function handleClientErrors(server: Server, connections: Connections, logger: Logger): void {
  // Node would respond to a missing Host header without a body; `rejectRepeatedHeaders` responds with the envelope.
  Object.assign(server, { requireHostHeader: false });
  // An unknown expectation may be ignored (RFC 9110, section 10.1.1); Node would respond without a body.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  );
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Socket) => {
    // Within a response the client would read the refusal as a part of its body.
    if (error.code === 'ECONNRESET' || !socket.writable || connections.isResponding(socket)) {
      socket.destroy();
      return;
    }
    const refusal = REFUSALS[error.code ?? ''] ?? MALFORMED;
    const requestId = randomUUID();
    const { status, code } = refusal;
    const { remoteAddress: address } = socket;
    logger.info({ event: 'request_refused', requestId, status, code, cause: error.code, address });
    // After the head of a response to HEAD a client takes a body for the next response.
    const hasBody = error.rawPacket?.toString('latin1', 0, 5) !== 'HEAD ';
    socket.end(rawResponse(refusal, requestId, hasBody));
  });
}

function rawResponse(refusal: RefusedRequestError, requestId: string, hasBody: boolean): string {
  const body = JSON.stringify(errorBody(refusal, requestId));
  return [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: private, no-store',
    'Connection: close',
    '',
    hasBody ? body : '',
  ].join('\r\n');
}

/** The connections of this machine on Linux: addresses and ports, state, bytes that the other end has not confirmed. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const ROW = /:(\w{4}) \w+:(\w{4}) \w\w (\w{8}):/g;
/** One reading serves all connections for this long. */
const READING_MS = 500;

let reading: Promise<ReadonlyMap<string, string>> | undefined;

/**
 * A text that changes when the reader of a connection takes something. Of itself Node.js sees that only when about a third of the
 * system's buffer is free, a megabyte, which a slow reader takes in minutes. Where there is no table, it is all there is.
 */
async function takenOf(socket: Socket): Promise<string> {
  reading ??= readQueues();
  const queue = (await reading).get(`${hex(socket.localPort)} ${hex(socket.remotePort)}`);
  return `${socket.bytesWritten - socket.writableLength} ${queue}`;
}

/** By ports: of readers at several addresses that have the same port, each counts as one that takes what the others take. */
async function readQueues(): Promise<ReadonlyMap<string, string>> {
  setTimeout(() => (reading = undefined), READING_MS).unref();
  const tables = await Promise.all(TABLES.map((table) => readFile(table, 'latin1').catch(() => '')));
  const queues = new Map<string, string>();
  for (const [, local = '', remote = '', queue = ''] of tables.join('').matchAll(ROW)) {
    const ports = `${local} ${remote}`;
    queues.set(ports, `${queues.get(ports) ?? ''}${queue}`);
  }
  return queues;
}

const hex = (port = 0): string => port.toString(16).toUpperCase().padStart(4, '0');

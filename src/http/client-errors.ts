import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { InvalidRequestError, type ErrorCode } from '../domain/errors.js';
import type { Connections } from './connections.js';
import { errorBody } from './error-body.js';
import { RefusedRequestError } from './routing-errors.js';

interface Refusal {
  status: number;
  message: string;
  /** `invalid_request` when it is not given. */
  code?: ErrorCode;
  headers?: Record<string, string>;
}

const MALFORMED: Refusal = { status: 400, message: 'This is not a well-formed HTTP request.' };
const REFUSALS: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The request line and the headers together are too large.' },
  HPE_INVALID_URL: { status: 400, message: 'The address has characters that must be percent-encoded.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
};
const EXPECTATION: Refusal = { status: 417, message: 'The only expectation that is understood is 100-continue.' };
const TUNNEL: Refusal = {
  status: 405,
  code: 'method_not_allowed',
  message: 'This is no proxy: CONNECT is not answered.',
  headers: { Allow: 'GET' },
};
const HOST = 'The header Host must be given once.';

/** More than proxies and browsers together ever send. */
const HEADERS_MAX = 100;

/** How long a refused connection is held for its client to read why and to close it. */
const LINGER_MS = 2_000;

/** Gives the error envelope, and a line in the log, to what Node refuses before any of our code sees a request. */
export function handleClientErrors(server: Server, connections: Connections, logger: Logger): void {
  // Node would answer this one with an empty body of its own; `refuseWrongHost` does it instead.
  Object.assign(server, { requireHostHeader: false });
  const answer = (refusal: Refusal, { remoteAddress: address }: Socket, cause?: string): RawResponse => {
    const made = responseTo(refusal);
    const { status, code = 'invalid_request' } = refusal;
    const facts = { status, code, ...(cause !== undefined && { cause }), address };
    logger.info({ event: 'request_refused', requestId: made.requestId, ...facts });
    return made;
  };
  const refuseInTurn = (refusal: Refusal, socket: Socket, cause?: string): void =>
    connections.refuse(socket, () => refuse(socket, refusal.status, answer(refusal, socket, cause)));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else refuseInTurn(REFUSALS[error.code ?? ''] ?? MALFORMED, socket, error.code);
  });
  // Through the response, which waits for the answers to earlier requests on the connection.
  server.on('checkExpectation', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const { headers, body } = answer(EXPECTATION, socket);
    response.writeHead(EXPECTATION.status, headers).end(body);
  });
  // Without a listener Node closes the connection and says nothing.
  server.on('connect', ({ socket }: IncomingMessage) => {
    socket.on('error', () => socket.destroy());
    refuseInTurn(TUNNEL, socket);
  });
}

/** HTTP/1.1 asks for the header, once; older versions do without. */
export function rejectInvalidHost(request: Request, _response: Response, next: NextFunction): void {
  const given = request.headersDistinct['host']?.length ?? 0;
  const wrong = given > 1 || (given === 0 && request.httpVersion === '1.1');
  next(wrong ? new InvalidRequestError([{ field: 'Host', message: HOST }]) : undefined);
}

/** Node bounds the size of the headers only, or drops those past a count without a word. */
export function rejectTooManyHeaders(request: Request, _response: Response, next: NextFunction): void {
  const tooMany = request.rawHeaders.length / 2 > HEADERS_MAX;
  const message = `The request has more than ${HEADERS_MAX} headers.`;
  next(tooMany ? new RefusedRequestError(431, 'headers', message) : undefined);
}

interface RawResponse {
  requestId: string;
  headers: Record<string, string>;
  body: string;
}

function refuse(socket: Socket, status: number, { headers, body }: RawResponse): void {
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head.join('')}\r\n${body}`);
  // A client that never closes its side would otherwise keep the socket.
  socket.setTimeout(LINGER_MS, () => socket.destroy());
}

function responseTo({ message, code = 'invalid_request', headers: own = {} }: Refusal): RawResponse {
  const requestId = randomUUID();
  const fields = code === 'invalid_request' ? { details: [{ field: 'request', message }] } : {};
  const body = JSON.stringify(errorBody({ code, message, retryable: false, fields }, requestId));
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'private, no-store',
    ...own,
    Connection: 'close',
  };
  return { requestId, headers, body };
}

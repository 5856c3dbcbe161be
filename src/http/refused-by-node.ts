import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';
import type { Connections } from './connections.js';
import { errorBody } from './error-body.js';

interface Refusal {
  status: number;
  message: string;
}

const MALFORMED: Refusal = { status: 400, message: 'This is not a well-formed HTTP request.' };
const REFUSALS: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The request line and the headers together are too large.' },
  HPE_INVALID_URL: { status: 400, message: 'The address has characters that must be percent-encoded.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
};
const EXPECTATION: Refusal = { status: 417, message: 'The only expectation that is understood is 100-continue.' };
const HOST = 'The header Host must be given once.';

/** How long a refused connection is held for its client to read why and to close it. */
const LINGER_MS = 2_000;

/** Gives the error envelope to what Node refuses before any of our code sees a request. */
export function answerWhatNodeRefuses(server: Server, connections: Connections): void {
  // Node would answer this one with an empty body of its own; `refuseWrongHost` does it instead.
  Object.assign(server, { requireHostHeader: false });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // In the middle of an answer a refusal would be read as a part of it.
    if (error.code === 'ECONNRESET' || !socket.writable || connections.hasBegunAnAnswer(socket)) socket.destroy();
    else refuse(socket, REFUSALS[error.code ?? ''] ?? MALFORMED);
  });
  // Through the response, which waits for the answers to earlier requests on the connection.
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const { headers, body } = answerTo(EXPECTATION);
    response.writeHead(EXPECTATION.status, headers).end(body);
  });
}

/** HTTP/1.1 asks for the header, once; older versions do without. */
export function refuseWrongHost(request: Request, _response: Response, next: NextFunction): void {
  const given = request.headersDistinct['host']?.length ?? 0;
  const wrong = given > 1 || (given === 0 && request.httpVersion === '1.1');
  next(wrong ? new InvalidRequestError([{ field: 'Host', message: HOST }]) : undefined);
}

function refuse(socket: Socket, refusal: Refusal): void {
  const { headers, body } = answerTo(refusal);
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\n${head.join('')}\r\n${body}`);
  // A client that never closes its side would otherwise keep the socket.
  socket.setTimeout(LINGER_MS, () => socket.destroy());
}

function answerTo({ message }: Refusal): { headers: Record<string, string>; body: string } {
  const requestId = randomUUID();
  const fields = { details: [{ field: 'request', message }] };
  const body = JSON.stringify(errorBody({ code: 'invalid_request', message, retryable: false, fields }, requestId));
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
    'Cache-Control': 'private, no-store',
    Connection: 'close',
  };
  return { headers, body };
}

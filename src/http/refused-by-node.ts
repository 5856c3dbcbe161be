import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';
import { errorBody } from './error-body.js';

interface Refusal {
  status: number;
  message: string;
}

const MALFORMED: Refusal = { status: 400, message: 'This is not a well-formed HTTP request.' };
const REFUSALS: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The request line and the headers together are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
};
const EXPECTATION: Refusal = { status: 417, message: 'The only expectation that is understood is 100-continue.' };
const NO_HOST = 'The header Host is missing.';

/** Gives the error envelope to what Node refuses before any of our code sees a request. */
export function answerWhatNodeRefuses(server: Server): void {
  // Node would answer this one with an empty body of its own; `refuseMissingHost` does it instead.
  Object.assign(server, { requireHostHeader: false });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else refuse(socket, REFUSALS[error.code ?? ''] ?? MALFORMED);
  });
  server.on('checkExpectation', (request: { socket: Socket }) => refuse(request.socket, EXPECTATION));
}

/** HTTP/1.1 asks for the header; older versions do without. */
export function refuseMissingHost(request: Request, _response: Response, next: NextFunction): void {
  const missing = request.headers.host === undefined && request.httpVersion === '1.1';
  next(missing ? new InvalidRequestError([{ field: 'Host', message: NO_HOST }]) : undefined);
}

function refuse(socket: Socket, { status, message }: Refusal): void {
  const requestId = randomUUID();
  const fields = { details: [{ field: 'request', message }] };
  const body = JSON.stringify(errorBody({ code: 'invalid_request', message, retryable: false, fields }, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: private, no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

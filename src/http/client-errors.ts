import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { RefusedRequestError } from '../domain/errors.js';
import type { Connections } from './connections.js';
import { errorBody } from './error-body.js';

const MALFORMED = new RefusedRequestError(400, 'request', 'The request is not well-formed HTTP.');
const REFUSALS: Record<string, RefusedRequestError> = {
  HPE_HEADER_OVERFLOW: new RefusedRequestError(
    431,
    'request',
    'The request line and the headers together are too large.',
  ),
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
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
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
    socket.end(rawResponse(refusal, requestId));
  });
}

function rawResponse(refusal: RefusedRequestError, requestId: string): string {
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
    body,
  ].join('\r\n');
}

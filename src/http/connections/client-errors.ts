import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { ErrorCode } from '../../domain/errors.js';
import { errorBody } from '../error-body.js';
import type { Connections } from './connections.js';

interface Refusal {
  status: number;
  message: string;
  /** `invalid_request` by default. */
  code?: ErrorCode;
  headers?: Record<string, string>;
}

const MALFORMED: Refusal = { status: 400, message: 'The request is not well-formed HTTP.' };
const REFUSALS: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The request line and the headers together are too large.' },
  HPE_INVALID_URL: { status: 400, message: 'The URL contains characters that must be percent-encoded.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
};
const EXPECTATION: Refusal = { status: 417, message: 'Expect: 100-continue is the only supported expectation.' };
const TUNNEL: Refusal = {
  status: 405,
  code: 'method_not_allowed',
  message: 'CONNECT is not supported: this service is not a proxy.',
  headers: { Allow: 'GET' },
};

/** How long the client of a refused connection may take to read the response and to close the connection. */
const LINGER_MS = 2_000;

/** Sends the error envelope for requests that Node rejects before any middleware runs, and logs them. */
export function handleClientErrors(
  server: Server,
  connections: Connections,
  logger: Logger,
  lingerMs = LINGER_MS,
): void {
  // Node would respond to a missing Host header without a body; `rejectInvalidHost` responds with the envelope.
  Object.assign(server, { requireHostHeader: false });
  const respond = (refusal: Refusal, { remoteAddress: address }: Socket, cause?: string): RawResponse => {
    const response = responseTo(refusal);
    const { status, code = 'invalid_request' } = refusal;
    const fields = { status, code, ...(cause !== undefined && { cause }), address };
    logger.info({ event: 'request_refused', requestId: response.requestId, ...fields });
    return response;
  };
  const refuse = (refusal: Refusal, socket: Socket, cause?: string): void =>
    connections.refuse(socket, () => {
      writeRefusal(socket, refusal.status, respond(refusal, socket, cause));
      // The client may never close its side.
      socket.setTimeout(lingerMs, () => socket.destroy());
    });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else refuse(REFUSALS[error.code ?? ''] ?? MALFORMED, socket, error.code);
  });
  // Written through the response, which Node queues behind the responses to earlier requests on the connection.
  server.on('checkExpectation', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const { headers, body } = respond(EXPECTATION, socket);
    response.writeHead(EXPECTATION.status, headers).end(body);
  });
  // Without a listener Node closes the connection without a response.
  server.on('connect', ({ socket }: IncomingMessage) => {
    socket.on('error', () => socket.destroy());
    refuse(TUNNEL, socket);
  });
}

interface RawResponse {
  requestId: string;
  headers: Record<string, string>;
  body: string;
}

function writeRefusal(socket: Socket, status: number, { headers, body }: RawResponse): void {
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head.join('')}\r\n${body}`);
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

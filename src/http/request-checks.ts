import { isIPv6 } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';
import { RefusedRequestError } from './routing-errors.js';

/** Well above what browsers and proxies send. */
const HEADERS_MAX = 100;

/** Middleware: Express would respond to `If-None-Match: *` with 304 and no body, although no response is cacheable. */
export function ignoreConditionalHeaders(request: Request, _response: Response, next: NextFunction): void {
  delete request.headers['if-none-match'];
  delete request.headers['if-modified-since'];
  next();
}

/** Middleware: Node limits the size of the headers, and would silently drop those beyond a maximum number. */
export function rejectTooManyHeaders(request: Request, _response: Response, next: NextFunction): void {
  const tooMany = request.rawHeaders.length / 2 > HEADERS_MAX;
  const message = `The request has more than ${HEADERS_MAX} headers.`;
  next(tooMany ? new RefusedRequestError(431, 'headers', message) : undefined);
}

/**
 * A host and an optional port by the grammar of RFC 3986, section 3.2: an IPv6 address in brackets, or a name of unreserved
 * characters, percent-encoded bytes and sub-delims. Bytes above 0x7F are accepted too, which some clients send as they are.
 */
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=\x80-\xff-]|%[0-9A-Fa-f]{2})+)(?::([0-9]*))?$/;
const PORT_MAX = 65_535;

/** Middleware: HTTP/1.1 requires exactly one `Host` header; HTTP/1.0 allows none. Its value is a host, perhaps with a port. */
export function rejectInvalidHost(request: Request, _response: Response, next: NextFunction): void {
  const hosts = request.headersDistinct['host'] ?? [];
  const required = request.httpVersion === '1.1';
  if (hosts.length > 1 || (hosts.length === 0 && required)) {
    next(new InvalidRequestError([{ field: 'Host', message: 'The Host header must be sent exactly once.' }]));
    return;
  }
  const message = 'The Host header must be a host name or an address, and may have a port, such as example.com:3000.';
  next(isHost(hosts[0] ?? '') ? undefined : new InvalidRequestError([{ field: 'Host', message }]));
}

/** Whether the value of a `Host` header is valid. RFC 9112, section 3.2, allows an empty one. */
export function isHost(value: string): boolean {
  if (value === '') return true;
  const [host, ipv6, port = ''] = HOST.exec(value) ?? [];
  return host !== undefined && (ipv6 === undefined || isIPv6(ipv6)) && Number(port) <= PORT_MAX;
}

/** Middleware, before authentication: Node uses the first of several `Authorization` headers, a proxy perhaps the last. */
export function rejectRepeatedAuthorization(request: Request, _response: Response, next: NextFunction): void {
  const repeated = (request.headersDistinct['authorization']?.length ?? 0) > 1;
  const message = 'The Authorization header must be sent at most once.';
  next(repeated ? new InvalidRequestError([{ field: 'Authorization', message }]) : undefined);
}

/** Middleware: rejects a path that cannot be percent-decoded, before any other code parses it. */
export function rejectUndecodablePath(request: Request, _response: Response, next: NextFunction): void {
  try {
    decodeURIComponent(request.path);
    next();
  } catch {
    const message =
      'The path is not valid percent-encoding: each % must be followed by two hexadecimal digits, and the decoded bytes must be UTF-8.';
    next(new InvalidRequestError([{ field: 'path', message }]));
  }
}

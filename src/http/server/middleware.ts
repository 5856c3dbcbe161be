import type { NextFunction, Request, Response } from 'express';
import helmet from 'helmet';
import { InvalidRequestError, invalidField } from '../../domain/errors.js';

const NONE = ["'none'"];

/** Responses are data: browsers must not execute, frame or navigate them. @param directives what a page needs besides */
export function withPolicy(directives: Record<string, string[]> = {}) {
  const strict = { defaultSrc: NONE, baseUri: NONE, formAction: NONE, frameAncestors: NONE };
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { ...strict, ...directives } },
    // The proxy terminates TLS and sets this header: the service does not know the host names it applies to.
    strictTransportSecurity: false,
    xFrameOptions: { action: 'deny' },
  });
}

/** Middleware: the headers that restrict what browsers do with a response. Pages replace them by their own. */
export const securityHeaders = withPolicy();

/**
 * Middleware: HTTP/1.1 requires exactly one `Host` header. Of several `Authorization` headers Node uses the first one, and a
 * proxy perhaps the last.
 */
export function rejectRepeatedHeaders(request: Request, _response: Response, next: NextFunction): void {
  const { host = [], authorization = [] } = request.headersDistinct;
  const details = [];
  if (host.length > 1 || (host.length === 0 && request.httpVersion === '1.1')) {
    details.push({ field: 'Host', message: 'The Host header must be sent exactly once.' });
  }
  if (authorization.length > 1) {
    details.push({ field: 'Authorization', message: 'The Authorization header must be sent at most once.' });
  }
  next(details.length > 0 ? new InvalidRequestError(details) : undefined);
}

/** Middleware: rejects a path that cannot be percent-decoded, before any other code parses it. */
export function rejectUndecodablePath(request: Request, _response: Response, next: NextFunction): void {
  try {
    decodeURIComponent(request.path);
    next();
  } catch {
    const message =
      'The path is not valid percent-encoding: each % must be followed by two hexadecimal digits, and the decoded bytes must be UTF-8.';
    next(invalidField('path', message));
  }
}

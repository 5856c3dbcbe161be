import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError, invalidField } from '../../domain/errors.js';

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

import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError, MethodNotAllowedError, RouteNotFoundError } from '../domain/errors.js';

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
    next(new InvalidRequestError([{ field: 'path', message }]));
  }
}

/** Below `/docs/`, but no file of Swagger UI. */
const NO_DOCS_FILE = /^\/docs\/(?![A-Za-z0-9][A-Za-z0-9._-]*$)/;

/** Middleware: Express would resolve and decode the path of a file, and redirect. Test: `test/http/paths.e2e-spec.ts`. */
export function rejectOtherDocs(request: Request, _response: Response, next: NextFunction): void {
  next(NO_DOCS_FILE.test(request.path) ? new RouteNotFoundError() : undefined);
}

/** HEAD would fetch transcripts and charge quota, or read all results of a job, without returning them. */
const WITHOUT_HEAD = /^\/(?:(?:channels|playlists|videos)\/.+\/transcripts?|jobs\/[^/]+\/results)$/;

/** Middleware: Express would handle HEAD as GET. */
export function rejectExpensiveHead(request: Request, _response: Response, next: NextFunction): void {
  const isRejected = request.method === 'HEAD' && WITHOUT_HEAD.test(request.path);
  next(isRejected ? new MethodNotAllowedError('GET') : undefined);
}

/** In the order in which `Allow` lists them. */
const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'];

/** The methods of the routes whose path matches. Express handles another method like an unknown path. */
export function allowedMethods({ app, path }: Request): string[] {
  const registered = app.router.stack.flatMap(({ route }) =>
    route && patternOf(route.path).test(path) ? route.stack.map(({ method }) => method.toUpperCase()) : [],
  );
  const methods = METHODS.filter((method) => registered.includes(method));
  return methods.includes('GET') && !WITHOUT_HEAD.test(path) ? [...methods, 'HEAD'] : methods;
}

/** `:id` is one segment of the path, `*id` also a URL with slashes. */
function patternOf(route: string): RegExp {
  return new RegExp(
    `^${route
      .replace(/[.+?()[\]{}|\\^$]/g, '\\$&')
      .replace(/:\w+/g, '[^/]+')
      .replace(/\*\w+/g, '.+')}$`,
  );
}

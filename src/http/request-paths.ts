import type { IncomingMessage, Server } from 'node:http';
import { parse, type ParsedUrlQuery } from 'node:querystring';
import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';
import { MethodNotAllowedError, RouteNotFoundError } from './routing-errors.js';

/** HEAD on these would do the work, spend quota and return nothing. */
const WITHOUT_HEAD = new Set(['/channels/{id}/transcripts']);

/** The documentation page, its files and the document itself, which the document does not list as operations. */
const DOCUMENT_ROUTES = {
  pattern: /^\/docs(?:-json|\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/,
  methods: ['GET', 'HEAD'],
};

/** `.` and `..` as a segment, also percent-encoded: proxies resolve them, and this service does not. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Stands for an address that cannot be read: `refuseUndecodablePath` refuses it. */
const UNREADABLE = '/%';

/** One segment of a path. */
const SEGMENT = '[^/]+';
/** One segment, or a URL with raw slashes, of which the last may be doubled by a slash at the end of the URL. */
const RAW_URL = '[^/]+(?:/.*[^/]/?)?';

/** Paths whose parameter takes slashes too: a URL as the id of a channel may come with raw ones. */
const WITH_RAW_URL = new Set(['/channels/{id}/transcripts']);

/** A request target in absolute form: the scheme and the authority, then the rest. */
const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]+((?:[/?#].*)?)$/is;

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const;

export interface DocumentedPaths {
  paths: Record<string, object>;
}

/** Finds the route that a path leads to, as the document writes it; undefined when there is none. */
export function routeFinder(document: DocumentedPaths): (path: string) => string | undefined {
  const routes = Object.keys(document.paths).map((route) => ({ route, pattern: patternOf(route) }));
  return (path) => (DOT_SEGMENT.test(path) ? undefined : routes.find(({ pattern }) => pattern.test(path))?.route);
}

/**
 * Gives every request the path and query of its address, which a proxy may have sent as a whole URL, exactly as they were
 * written: nothing is resolved, decoded or cut off. An address that cannot be read would otherwise be answered by Express
 * itself, in HTML and before all middleware.
 */
export function normalizeRequestUrls(server: Server): void {
  server.prependListener('request', (request: IncomingMessage) => {
    request.url = pathAndQuery(request.url ?? '');
  });
}

function pathAndQuery(target: string): string {
  // A target has no fragment; `url.parse` would cut one off.
  const address = target.replaceAll('#', '%23');
  if (address.startsWith('/') || address === '*') return address;
  const [, rest] = ABSOLUTE_FORM.exec(address) ?? [];
  // The path is not taken from the parsed URL, which resolves `/x/../metrics` to `/metrics`.
  if (rest === undefined || !URL.canParse(address)) return UNREADABLE;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Reads a query whole: by default everything after the thousandth parameter would be overlooked. */
export function readQuery(query: string | null): ParsedUrlQuery {
  return parse(query ?? '', undefined, undefined, { maxKeys: 0 });
}

/** Refuses a path that cannot be percent-decoded, before anything looks at it. */
export function rejectUndecodablePath(request: Request, _response: Response, next: NextFunction): void {
  try {
    decodeURIComponent(request.path);
    next();
  } catch {
    const message =
      'The path is not well percent-encoded: % must be followed by two hexadecimal digits that make valid UTF-8.';
    next(new InvalidRequestError([{ field: 'path', message }]));
  }
}

/**
 * Lets through the routes of the OpenAPI document, in the spelling that it gives, and nothing else: Express itself takes
 * other cases and a slash at the end for the same route, which a rule of a proxy by path does not. Answers 405 with
 * `Allow` when the path exists for other methods, and 404 when it does not exist.
 */
export function rejectUndocumentedPaths(document: DocumentedPaths) {
  const routes = Object.entries(document.paths).map(([path, operations]) => {
    const methods = METHODS.filter((method) => method in operations).map((method) => method.toUpperCase());
    if (methods.includes('GET') && !WITHOUT_HEAD.has(path)) methods.push('HEAD');
    return { pattern: patternOf(path), methods };
  });
  routes.push(DOCUMENT_ROUTES);
  return (request: Request, _response: Response, next: NextFunction): void => {
    const { path } = request;
    const matching = DOT_SEGMENT.test(path) ? [] : routes.filter(({ pattern }) => pattern.test(path));
    const allowed = matching.flatMap(({ methods }) => methods);
    if (matching.length === 0) next(new RouteNotFoundError());
    else next(allowed.includes(request.method) ? undefined : new MethodNotAllowedError(allowed.join(', ')));
  };
}

function patternOf(path: string): RegExp {
  const escaped = path
    .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
    .replace(/\{[^{}]+\}/g, WITH_RAW_URL.has(path) ? RAW_URL : SEGMENT);
  return new RegExp(`^${escaped}$`);
}

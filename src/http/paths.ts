import type { IncomingMessage, Server } from 'node:http';
import { parse, type ParsedUrlQuery } from 'node:querystring';
import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';
import { MethodNotAllowedError } from './routing-errors.js';

/** HEAD on these would do the work, spend quota and return nothing. */
const WITHOUT_HEAD = new Set(['/channels/{id}/transcripts']);

/** The pages of the document are no operations, so that it does not name them. */
const DOCUMENT_ROUTES = { pattern: /^\/docs(-json)?\/?$/i, methods: ['GET', 'HEAD'] };

/** Stands for an address that cannot be read: `refuseUndecodablePath` refuses it. */
const UNREADABLE = '/%';

/** Here a parameter takes slashes too: a URL as the id of a channel may come with raw ones. */
const WITH_RAW_URL = new Set(['/channels/{id}/transcripts']);

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const;

export interface DocumentedPaths {
  paths: Record<string, object>;
}

/** Finds the route that a path leads to, as the document writes it; undefined when there is none. */
export function routeFinder(document: DocumentedPaths): (path: string) => string | undefined {
  const routes = Object.keys(document.paths).map((route) => ({ route, pattern: patternOf(route) }));
  return (path) => routes.find(({ pattern }) => pattern.test(path))?.route;
}

/**
 * Gives every request the path and query of its address, which a proxy may have sent as a whole URL. An address that
 * cannot be read would otherwise be answered by Express itself, in HTML and before all middleware.
 */
export function readAddresses(server: Server): void {
  server.prependListener('request', (request: IncomingMessage) => {
    request.url = pathAndQuery(request.url ?? '');
  });
}

function pathAndQuery(target: string): string {
  const [address = ''] = target.split('#', 1);
  if (address.startsWith('/') || address === '*') return address;
  if (!URL.canParse(address)) return UNREADABLE;
  const { pathname, search } = new URL(address);
  return pathname.startsWith('/') ? pathname + search : UNREADABLE;
}

/** Reads a query whole: by default everything after the thousandth parameter would be overlooked. */
export function readQuery(query: string | null): ParsedUrlQuery {
  return parse(query ?? '', undefined, undefined, { maxKeys: 0 });
}

/** Refuses a path that cannot be percent-decoded, before anything looks at it. */
export function refuseUndecodablePath(request: Request, _response: Response, next: NextFunction): void {
  try {
    decodeURIComponent(request.path);
    next();
  } catch {
    const message =
      'The path is not well percent-encoded: % must be followed by two hexadecimal digits that make valid UTF-8.';
    next(new InvalidRequestError([{ field: 'path', message }]));
  }
}

/** Answers 405 with `Allow` when the path exists for other methods; which paths exist is read from the OpenAPI document. */
export function refuseOtherMethods(document: DocumentedPaths) {
  const routes = Object.entries(document.paths).map(([path, operations]) => {
    const methods = METHODS.filter((method) => method in operations).map((method) => method.toUpperCase());
    if (methods.includes('GET') && !WITHOUT_HEAD.has(path)) methods.push('HEAD');
    return { pattern: patternOf(path), methods };
  });
  routes.push(DOCUMENT_ROUTES);
  return (request: Request, _response: Response, next: NextFunction): void => {
    const allowed = routes.filter(({ pattern }) => pattern.test(request.path)).flatMap(({ methods }) => methods);
    next(
      allowed.length === 0 || allowed.includes(request.method)
        ? undefined
        : new MethodNotAllowedError(allowed.join(', ')),
    );
  };
}

function patternOf(path: string): RegExp {
  const escaped = path
    .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
    .replace(/\{[^{}]+\}/g, WITH_RAW_URL.has(path) ? '.+' : '[^/]+');
  return new RegExp(`^${escaped}/?$`, 'i');
}

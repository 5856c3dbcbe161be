import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';
import { MethodNotAllowedError } from './routing-errors.js';

/** HEAD on these would do the work, spend quota and return nothing. */
const WITHOUT_HEAD = new Set(['/channels/{id}/transcripts']);

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const;

interface DocumentedPaths {
  paths: Record<string, object>;
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
  return (request: Request, _response: Response, next: NextFunction): void => {
    const allowed = routes.filter(({ pattern }) => pattern.test(request.path)).flatMap(({ methods }) => methods);
    next(
      allowed.length === 0 || allowed.includes(request.method)
        ? undefined
        : new MethodNotAllowedError(allowed.join(', ')),
    );
  };
}

/** A parameter takes slashes too: a URL as the id of a channel may come with raw ones. */
function patternOf(path: string): RegExp {
  const escaped = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '.+');
  return new RegExp(`^${escaped}/?$`, 'i');
}

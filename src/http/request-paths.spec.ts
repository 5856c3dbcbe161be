import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import { rejectUndocumentedPaths } from './request-paths.js';
import { MethodNotAllowedError, RouteNotFoundError } from './routing-errors.js';

const reject = rejectUndocumentedPaths({
  paths: {
    '/channels/{id}/transcripts': { get: {} },
    '/things': { get: {}, post: {} },
    '/things/{id}': { delete: {} },
    '/things/{id}/parts': { post: {} },
  },
});

/** The methods that a 405 allows, 'unknown' for a 404, or 'passed'. */
function outcome(method: string, path: string): string {
  let result = 'passed';
  reject({ method, path } as Request, {} as Response, (error: unknown) => {
    if (error instanceof MethodNotAllowedError) result = error.allowed;
    if (error instanceof RouteNotFoundError) result = 'unknown';
  });
  return result;
}

describe('the methods of a path', () => {
  it.each([
    ['GET', '/channels/@a/transcripts', 'passed'],
    ['HEAD', '/channels/@a/transcripts', 'GET'],
    ['POST', '/channels/https://www.youtube.com/@a/transcripts', 'GET'],
    ['OPTIONS', '/channels/@a/transcripts', 'GET'],
    ['GET', '/channels/@a/transcripts/', 'unknown'],
    ['TRACE', '/CHANNELS/@a/transcripts', 'unknown'],
    ['GET', '/channels/a/./b/transcripts', 'unknown'],
    ['DELETE', '/things/..', 'unknown'],
    ['HEAD', '/things', 'passed'],
    ['DELETE', '/things', 'GET, POST, HEAD'],
    ['GET', '/things/1', 'DELETE'],
    ['DELETE', '/things/1/parts', 'POST'],
    ['POST', '/elsewhere', 'unknown'],
    ['POST', '/things.', 'unknown'],
  ])('%s %s: %s', (method, path, expected) => {
    expect(outcome(method, path)).toBe(expected);
  });
});

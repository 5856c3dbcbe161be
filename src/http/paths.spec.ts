import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import { refuseOtherMethods } from './paths.js';
import { MethodNotAllowedError } from './routing-errors.js';

const refuse = refuseOtherMethods({
  paths: {
    '/channels/{id}/transcripts': { get: {} },
    '/things': { get: {}, post: {} },
    '/things/{id}': { delete: {} },
    '/things/{id}/parts': { post: {} },
  },
});

/** The methods of a refusal, or 'passed'. */
function outcome(method: string, path: string): string {
  let result = 'passed';
  refuse({ method, path } as Request, {} as Response, (error: unknown) => {
    if (error instanceof MethodNotAllowedError) result = error.allowed;
  });
  return result;
}

describe('the methods of an address', () => {
  it.each([
    ['GET', '/channels/@a/transcripts', 'passed'],
    ['HEAD', '/channels/@a/transcripts', 'GET'],
    ['POST', '/channels/https://www.youtube.com/@a/transcripts', 'GET'],
    ['OPTIONS', '/channels/@a/transcripts/', 'GET'],
    ['TRACE', '/CHANNELS/@a/transcripts', 'GET'],
    ['HEAD', '/things', 'passed'],
    ['DELETE', '/things', 'GET, POST, HEAD'],
    ['GET', '/things/1', 'DELETE'],
    ['DELETE', '/things/1/parts', 'POST'],
    ['POST', '/elsewhere', 'passed'],
    ['POST', '/things.', 'passed'],
  ])('%s %s: %s', (method, path, expected) => {
    expect(outcome(method, path)).toBe(expected);
  });
});

import type { Json, JsonObject } from './json.js';

/** A response of the fake YouTube before faults, `$fields` and compression are applied. */
export interface FakeResponse {
  status: number;
  contentType: string;
  /** Set when the body depends on nothing else, so that its rendered and compressed form can be cached. */
  cacheKey?: string;
  body: { json: () => Json } | { text: () => string };
}

const JSON_TYPE = 'application/json; charset=UTF-8';

export function jsonResponse(json: () => JsonObject, cacheKey?: string): FakeResponse {
  return { status: 200, contentType: JSON_TYPE, body: { json }, ...(cacheKey !== undefined && { cacheKey }) };
}

export function textResponse(status: number, contentType: string, text: () => string, cacheKey?: string): FakeResponse {
  return { status, contentType, body: { text }, ...(cacheKey !== undefined && { cacheKey }) };
}

/** The error body of Google's APIs. */
function errorResponse(code: number, status: string, reason: string, message: string): FakeResponse {
  const json = () => ({ error: { code, message, errors: [{ message, domain: 'global', reason }], status } });
  return { status: code, contentType: JSON_TYPE, body: { json } };
}

export function invalidArgument(): FakeResponse {
  return errorResponse(400, 'INVALID_ARGUMENT', 'badRequest', 'Request contains an invalid argument.');
}

export function notFound(): FakeResponse {
  return errorResponse(404, 'NOT_FOUND', 'notFound', 'Requested entity was not found.');
}

/** A 404 as an HTML page, as the platform's site sends it. */
export function htmlNotFound(): FakeResponse {
  return textResponse(
    404,
    'text/html; charset=UTF-8',
    () => '<!DOCTYPE html><title>404 Not Found</title><p>Not found.',
  );
}

import type { Json, JsonObject } from './json.js';

/** What the stand-in answers, before faults, `$fields` and compression. */
export interface Answer {
  status: number;
  contentType: string;
  /** Set when the body depends on nothing else, so that it can be kept in its written and compressed form. */
  cacheKey?: string;
  body: { json: () => Json } | { text: () => string };
}

const JSON_TYPE = 'application/json; charset=UTF-8';

export function jsonAnswer(json: () => JsonObject, cacheKey?: string): Answer {
  return { status: 200, contentType: JSON_TYPE, body: { json }, ...(cacheKey !== undefined && { cacheKey }) };
}

export function textAnswer(status: number, contentType: string, text: () => string, cacheKey?: string): Answer {
  return { status, contentType, body: { text }, ...(cacheKey !== undefined && { cacheKey }) };
}

/** The error body of Google's APIs. */
export function errorAnswer(code: number, status: string, reason: string, message: string): Answer {
  const json = () => ({ error: { code, message, errors: [{ message, domain: 'global', reason }], status } });
  return { status: code, contentType: JSON_TYPE, body: { json } };
}

export function invalidArgument(): Answer {
  return errorAnswer(400, 'INVALID_ARGUMENT', 'badRequest', 'Request contains an invalid argument.');
}

export function notFound(): Answer {
  return errorAnswer(404, 'NOT_FOUND', 'notFound', 'Requested entity was not found.');
}

/** Tells it to a person who looks: a page of the platform's kind, not of its API. */
export function htmlNotFound(): Answer {
  return textAnswer(404, 'text/html; charset=UTF-8', () => '<!DOCTYPE html><title>404 Not Found</title><p>Not found.');
}

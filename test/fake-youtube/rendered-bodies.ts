import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Json, JsonObject } from './json.js';
import { project } from './partial-response.js';

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

/** A response ready to send. */
export interface RenderedBody {
  status: number;
  contentType: string;
  encoding: 'gzip' | 'identity';
  bytes: Buffer;
}

/** Smaller bodies are not compressed. */
const GZIP_BYTES_MIN = 1_024;
const STORED_BYTES_MAX = 128 * 1_024 * 1_024;
const GZIP_LEVEL = 1;
const sizeCalculation = ({ length }: Buffer): number => length + 1;

/** Renders responses and caches the expensive ones: in benchmarks the fake YouTube must cost little beside the service. */
export class RenderedBodies {
  private readonly stored = new LRUCache<string, Buffer>({ maxSize: STORED_BYTES_MAX, sizeCalculation });

  /**
   * @param fields the `$fields` parameter, null when there is none or the client's is ignored
   * @returns undefined when `fields` cannot be read
   */
  write(response: FakeResponse, fields: string | null, acceptsGzip: boolean): RenderedBody | undefined {
    const key = response.cacheKey === undefined ? undefined : `${response.cacheKey} ${fields ?? ''}`;
    const plain = this.store(key, () => plainBody(response, fields));
    if (!plain) return undefined;
    const { status, contentType } = response;
    if (!acceptsGzip || plain.length < GZIP_BYTES_MIN)
      return { status, contentType, encoding: 'identity', bytes: plain };
    const bytes = this.store(key && `${key} gzip`, () => gzipSync(plain, { level: GZIP_LEVEL })) ?? plain;
    return { status, contentType, encoding: 'gzip', bytes };
  }

  private store(key: string | undefined, make: () => Buffer | undefined): Buffer | undefined {
    const found = key === undefined ? undefined : this.stored.get(key);
    if (found) return found;
    const bytes = make();
    if (key !== undefined && bytes) this.stored.set(key, bytes);
    return bytes;
  }
}

function plainBody(response: FakeResponse, fields: string | null): Buffer | undefined {
  if ('text' in response.body) return Buffer.from(response.body.text());
  const json = response.body.json();
  // `$fields` does not apply to errors.
  const cut = fields === null || response.status !== 200 ? json : project(json, fields);
  return cut === undefined ? undefined : Buffer.from(JSON.stringify(cut));
}

export function send(response: ServerResponse, { status, contentType, encoding, bytes }: RenderedBody): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': bytes.length,
    Vary: 'Accept-Encoding',
    'Cache-Control': 'private',
    ...(encoding === 'gzip' && { 'Content-Encoding': 'gzip' }),
  });
  response.end(bytes);
}

export function sendText(response: ServerResponse, status: number, contentType: string, text: string): void {
  send(response, { status, contentType, encoding: 'identity', bytes: Buffer.from(text) });
}

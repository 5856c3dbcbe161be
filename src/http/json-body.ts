import { HttpStatus, Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { RefusedBodyError } from './routing-errors.js';

const BODY_BYTES_MAX = 16 * 1024;
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** Far above any value of the interface, far below what exhausts the stack of the validator. */
export const NESTING_LEVELS_MAX = 32;

/**
 * Reads the JSON object in the body of a request; without a body it is an empty object. Routes without this interceptor
 * never read a body. It is not Express's parser, because that one runs before the guards, reads an oversized body to its
 * end before it responds, and accepts malformed UTF-8.
 */
@Injectable()
export class JsonBody implements NestInterceptor {
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    if (METHODS_WITH_BODY.has(request.method)) request.body = await readBody(request, http.getResponse<Response>());
    return next.handle();
  }
}

/**
 * Whether a value nests objects and arrays more than `levels` deep: a string or a number is 0 deep, `{}` is 1. Works
 * without recursion, because a few kilobytes of brackets would exhaust the stack.
 */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  let objects = [value].filter(isObject);
  for (let depth = 0; objects.length > 0; depth += 1) {
    if (depth === levels) return true;
    objects = objects.flatMap((object): unknown[] => Object.values(object)).filter(isObject);
  }
  return false;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

async function readBody(request: Request, response: Response): Promise<object> {
  const { headers } = request;
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return {};
  rejectOtherContent(request);
  try {
    return parseObject(await readChunks(request, BODY_BYTES_MAX));
  } catch (error) {
    discardRest(request, response);
    throw error;
  }
}

/** The rest of the body may still arrive and must not be parsed as the next request. */
function discardRest(request: Request, response: Response): void {
  response.setHeader('Connection', 'close');
  request.resume();
}

function rejectOtherContent(request: Request): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (!request.is('application/json') || charset.toLowerCase() !== 'utf-8' || encoding.toLowerCase() !== 'identity') {
    throw unsupportedBody();
  }
}

/**
 * Reads the body of a request.
 *
 * @throws RefusedBodyError when it is larger than `bytesMax` or incomplete
 */
export async function readBytes(request: Request, response: Response, bytesMax: number): Promise<Buffer> {
  try {
    return await readChunks(request, bytesMax);
  } catch (error) {
    discardRest(request, response);
    throw error;
  }
}

async function readChunks(request: Request, bytesMax: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Does not destroy the stream on an error, because the response uses the same connection.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw bodyTooLarge(bytesMax);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof RefusedBodyError ? error : malformed('The body is incomplete.');
  }
  return Buffer.concat(chunks);
}

/** The parser's own message is not passed on, because it quotes the body. */
function parseObject(bytes: Buffer): object {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw malformed('The body is not valid JSON in UTF-8.');
  }
  if (!isObject(value) || Array.isArray(value)) throw malformed('The body must be a JSON object.');
  if (isNestedDeeper(value, NESTING_LEVELS_MAX)) {
    throw malformed(`The body must not be nested more than ${NESTING_LEVELS_MAX} levels deep.`);
  }
  return value;
}

function malformed(message: string): RefusedBodyError {
  return new RefusedBodyError(HttpStatus.BAD_REQUEST, message);
}

export function bodyTooLarge(bytesMax = BODY_BYTES_MAX): RefusedBodyError {
  return new RefusedBodyError(HttpStatus.PAYLOAD_TOO_LARGE, `The body has more than ${bytesMax} bytes.`);
}

export function unsupportedBody(): RefusedBodyError {
  return new RefusedBodyError(
    HttpStatus.UNSUPPORTED_MEDIA_TYPE,
    'Send the body as uncompressed JSON in UTF-8, with Content-Type: application/json.',
  );
}

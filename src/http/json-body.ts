import { HttpStatus, Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { isNestedDeeper, NESTING_LEVELS_MAX } from './json-depth.js';
import { RefusedBodyError } from './routing-errors.js';

const BODY_BYTES_MAX = 16 * 1024;
const WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Reads the JSON object in the body of a request; no body is an empty object. An interceptor, because those come after
 * the guards: whoever may not call is told so, whatever the body is. Routes without it never read a body.
 */
@Injectable()
export class JsonBody implements NestInterceptor {
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    if (WITH_BODY.has(request.method)) request.body = await readBody(request, http.getResponse<Response>());
    return next.handle();
  }
}

async function readBody(request: Request, response: Response): Promise<object> {
  const { headers } = request;
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return {};
  refuseOtherContent(request);
  try {
    return objectOf(await readBytes(request));
  } catch (error) {
    // The rest of the body may still be on its way, and must not be taken for the next request.
    response.setHeader('Connection', 'close');
    request.resume();
    throw error;
  }
}

function refuseOtherContent(request: Request): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (!request.is('application/json') || charset.toLowerCase() !== 'utf-8' || encoding.toLowerCase() !== 'identity') {
    throw new RefusedBodyError(
      HttpStatus.UNSUPPORTED_MEDIA_TYPE,
      'Send the body as uncompressed JSON in UTF-8, with Content-Type: application/json.',
    );
  }
}

async function readBytes(request: Request): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = Number(request.headers['content-length'] ?? 0);
  if (bytes > BODY_BYTES_MAX) throw tooLarge();
  bytes = 0;
  try {
    // Without destroying, because the refusal goes out on the same connection.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof RefusedBodyError ? error : malformed('The body did not arrive whole.');
  }
  return Buffer.concat(chunks);
}

/** What the parser says is not passed on, because it repeats the text. */
function objectOf(bytes: Buffer): object {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw malformed('The body is not well-formed JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw malformed('The body must be a JSON object.');
  }
  if (isNestedDeeper(value, NESTING_LEVELS_MAX)) {
    throw malformed(`The body is nested more than ${NESTING_LEVELS_MAX} levels deep.`);
  }
  return value;
}

function malformed(message: string): RefusedBodyError {
  return new RefusedBodyError(HttpStatus.BAD_REQUEST, message);
}

function tooLarge(): RefusedBodyError {
  return new RefusedBodyError(HttpStatus.PAYLOAD_TOO_LARGE, `The body has more than ${BODY_BYTES_MAX} bytes.`);
}

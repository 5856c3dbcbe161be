import { isUtf8 } from 'node:buffer';
import { HttpStatus, Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import express, { type Request, type Response } from 'express';
import type { Observable } from 'rxjs';
import { RefusedRequestError } from '../errors/http-errors.js';
import { Routes } from './routes.js';
import { StrictValidationPipe } from './validation.js';

const BODY_BYTES_MAX = 16 * 1024;

/** The methods whose body is read. That of others has no meaning, and is ignored. */
export const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH'];

/** What a route takes whose handler has no parameter for it. */
class Nothing {}

/**
 * Reads the JSON object in the body of a request, which is empty without a body, and refuses the query parameters and the
 * fields of the body for which the handler has no parameter. What it has one for is validated by its pipe. An interceptor
 * runs after the guards, and before the pipes.
 */
@Injectable()
export class DeclaredInput implements NestInterceptor {
  private readonly parsers = new Map<number, ReturnType<typeof jsonParser>>();

  constructor(
    private readonly routes: Routes,
    private readonly pipe: StrictValidationPipe,
  ) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const { query, takesBody, bodyBytesMax } = this.routes.of(context.getHandler());
    if (METHODS_WITH_BODY.includes(request.method)) {
      await this.readBody(request, http.getResponse<Response>(), bodyBytesMax);
      if (!takesBody) await this.pipe.transform(request.body, { type: 'body', metatype: Nothing });
    }
    if (query === 'none') await this.pipe.transform(request.query, { type: 'query', metatype: Nothing });
    return next.handle();
  }

  private async readBody(request: Request, response: Response, bytesMax = BODY_BYTES_MAX): Promise<void> {
    const isEmpty = request.headers['transfer-encoding'] === undefined && !Number(request.headers['content-length']);
    if (!isEmpty && request.is('application/json') === false) throw unsupportedBody();
    const parse = this.parsers.get(bytesMax) ?? jsonParser(bytesMax);
    this.parsers.set(bytesMax, parse);
    const error = await new Promise<unknown>((resolve) => void parse(request, response, resolve));
    if (error !== undefined) throw refusalOf(error, bytesMax);
    const body: unknown = request.body === undefined ? {} : request.body;
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      throw refusedBody(400, 'The body must be a JSON object.');
    request.body = body;
  }
}

function jsonParser(bytesMax: number) {
  return express.json({
    limit: bytesMax,
    inflate: false,
    strict: false,
    verify: (_request, _response, bytes) => {
      if (!isUtf8(bytes)) throw new Error('The body is not UTF-8.');
    },
  });
}

/** The parser's own message is not passed on, because it quotes the body. */
function refusalOf(error: unknown, bytesMax: number): RefusedRequestError {
  const type = error instanceof Error && 'type' in error ? error.type : undefined;
  if (type === 'entity.too.large') return bodyTooLarge(bytesMax);
  if (type === 'encoding.unsupported' || type === 'charset.unsupported') return unsupportedBody();
  const message = type === 'request.aborted' ? 'The body is incomplete.' : 'The body is not valid JSON in UTF-8.';
  return refusedBody(HttpStatus.BAD_REQUEST, message);
}

function refusedBody(status: HttpStatus, message: string): RefusedRequestError {
  return new RefusedRequestError(status, 'body', message);
}

export function bodyTooLarge(bytesMax = BODY_BYTES_MAX): RefusedRequestError {
  return refusedBody(HttpStatus.PAYLOAD_TOO_LARGE, `The body has more than ${bytesMax} bytes.`);
}

export function unsupportedBody(): RefusedRequestError {
  return refusedBody(
    HttpStatus.UNSUPPORTED_MEDIA_TYPE,
    'Send the body as uncompressed JSON in UTF-8, with Content-Type: application/json.',
  );
}

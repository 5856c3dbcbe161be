import { isUtf8 } from 'node:buffer';
import { HttpStatus, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import express, { type Request, type RequestHandler, type Response } from 'express';
import type { Observable } from 'rxjs';
import { RefusedRequestError } from '../domain/errors.js';

const BODY_BYTES_MAX = 16 * 1024;
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Reads the JSON object in the body of a request; without a body it is an empty object. An interceptor runs after the
 * guards. Routes without it never read a body.
 */
export class JsonBody implements NestInterceptor {
  private readonly parseJson: RequestHandler;

  constructor(private readonly bytesMax = BODY_BYTES_MAX) {
    this.parseJson = express.json({
      limit: bytesMax,
      inflate: false,
      verify: (_request, _response, bytes) => {
        if (!isUtf8(bytes)) throw new Error('The body is not UTF-8.');
      },
    });
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    if (METHODS_WITH_BODY.has(request.method)) {
      const isEmpty = request.headers['transfer-encoding'] === undefined && !Number(request.headers['content-length']);
      if (!isEmpty && request.is('application/json') === false) throw unsupportedBody();
      const body: unknown = (await this.read(request, http.getResponse<Response>())) ?? {};
      if (typeof body !== 'object' || Array.isArray(body)) throw refusedBody(400, 'The body must be a JSON object.');
      request.body = body;
    }
    return next.handle();
  }

  private async read(request: Request, response: Response): Promise<unknown> {
    const error = await new Promise<unknown>((resolve) => void this.parseJson(request, response, resolve));
    if (error === undefined) return request.body;
    // The parser's own message is not passed on, because it quotes the body.
    const type = error instanceof Error && 'type' in error ? error.type : undefined;
    if (type === 'entity.too.large') throw bodyTooLarge(this.bytesMax);
    if (type === 'encoding.unsupported' || type === 'charset.unsupported') throw unsupportedBody();
    throw type === 'request.aborted' ? refusedBody(400, 'The body is incomplete.') : notJson();
  }
}

function refusedBody(status: HttpStatus, message: string): RefusedRequestError {
  return new RefusedRequestError(status, 'body', message);
}

function notJson(): RefusedRequestError {
  return refusedBody(HttpStatus.BAD_REQUEST, 'The body is not valid JSON in UTF-8.');
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

import type { NextFunction, Request, Response } from 'express';

/**
 * Answers are never kept, so that no caller has a copy to compare: Express would still answer `If-None-Match: *` with 304
 * and no body, a probe's question too.
 */
export function ignoreConditionalHeaders(request: Request, _response: Response, next: NextFunction): void {
  delete request.headers['if-none-match'];
  delete request.headers['if-modified-since'];
  next();
}

import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { ServiceUnavailableError } from '../domain/errors.js';

const RETRY_AFTER_SECONDS = 5;

/** Whether the service is on its way out: it is not ready any more, and new requests are sent elsewhere. */
@Injectable()
export class ShutdownState {
  stopping = false;

  /** Middleware: refuses what arrives on a connection that was open when the shutdown began; probes still answer. */
  readonly refuse = (request: Request, response: Response, next: NextFunction): void => {
    if (!this.stopping || request.path.startsWith('/health/')) {
      next();
      return;
    }
    response.setHeader('Connection', 'close');
    next(
      new ServiceUnavailableError(
        'The service is shutting down. Try again; another instance may answer.',
        RETRY_AFTER_SECONDS,
      ),
    );
  };
}

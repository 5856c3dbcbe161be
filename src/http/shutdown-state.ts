import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { ServiceUnavailableError } from '../domain/errors.js';

const RETRY_AFTER_SECONDS = 5;
const FOR_OPERATORS = /^\/(?:health\/|metrics$)/;

/** Takes calls, and is closed as HTTP is: no new ones, those that run are answered within the grace, the rest is cut off. */
export interface ClosingServer {
  close(graceMs: number): Promise<void>;
}

/** How far the service is on its way out. */
@Injectable()
export class ShutdownState {
  /** Not ready any more. What arrives is still served, until whoever sends requests has seen that. */
  stopping = false;
  /** No new requests are taken on any more. */
  refusing = false;
  /** What takes calls beside HTTP. */
  readonly servers: ClosingServer[] = [];

  /**
   * Middleware: while stopping, ends each connection with its answer, so that its next request goes elsewhere; then
   * refuses what still arrives on open connections. Probes and metrics are answered to the end.
   */
  readonly refuse = (request: Request, response: Response, next: NextFunction): void => {
    if (this.stopping) response.setHeader('Connection', 'close');
    if (!this.refusing || FOR_OPERATORS.test(request.path)) {
      next();
      return;
    }
    next(this.refusal());
  };

  /** What a call that comes too late is told. */
  refusal(): ServiceUnavailableError {
    return new ServiceUnavailableError(
      'The service is shutting down. Try again; another instance may answer.',
      RETRY_AFTER_SECONDS,
    );
  }
}

import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { ServiceUnavailableError } from '../../domain/errors.js';
import { Routes } from '../routes/routes.js';

const RETRY_AFTER_SECONDS = 5;

/** A server beside HTTP, which closes together with it. */
export interface ClosingServer {
  /** Whether it is connected to the broker that it receives its calls from; absent when it needs none. */
  isConnected?: () => boolean;
  /** Stops accepting calls, waits up to `graceMs` for the running ones, and aborts the rest. */
  close(graceMs: number): Promise<void>;
}

/** The progress of a shutdown. */
@Injectable()
export class ShutdownState {
  /** Readiness fails. Requests are still served until the load balancer has noticed. */
  stopping = false;
  /** Requests are refused. No connection is accepted any more, and those that were have had time for a request. */
  refusing = false;
  readonly servers: ClosingServer[] = [];

  constructor(private readonly routes: Routes) {}

  /**
   * Middleware: while stopping, closes each connection after its response, so that the next request reaches another
   * instance; then refuses requests on connections that are still open. Probes are served until the end.
   */
  readonly refuse = (request: Request, response: Response, next: NextFunction): void => {
    if (this.stopping) response.setHeader('Connection', 'close');
    if (!this.refusing || this.routes.isProbe(request.path)) {
      next();
      return;
    }
    next(this.refusal());
  };

  refusal(): ServiceUnavailableError {
    return new ServiceUnavailableError(
      'The service is shutting down. Retry shortly to reach another instance.',
      RETRY_AFTER_SECONDS,
    );
  }
}

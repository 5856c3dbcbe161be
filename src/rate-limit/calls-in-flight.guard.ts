import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requestContextOf } from '../http/server/request-context.js';
import { CallsInFlight } from './calls-in-flight.js';

/** Refuses a call at the concurrency limit of its key or its organization (429) or of the process (503). */
@ApiErrors('concurrency_limited', 'at_capacity')
@Injectable()
export class CallsInFlightGuard implements CanActivate {
  constructor(private readonly calls: CallsInFlight) {}

  canActivate(execution: ExecutionContext): boolean {
    const context = requestContextOf(execution);
    this.calls.acquire(context.caller, context.ended());
    return true;
  }
}

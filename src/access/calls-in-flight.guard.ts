import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { callerOf } from './caller.js';
import { CallsInFlight } from './calls-in-flight.js';

/** How many at once: refuses a call while too many run, of the key (429) or of the process (503). */
@Injectable()
export class CallsInFlightGuard implements CanActivate {
  constructor(private readonly calls: CallsInFlight) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    await this.calls.enter(callerOf(http.getRequest<Request>()).keyId, closed(http.getResponse<Response>()));
    return true;
  }
}

/** Resolves when the response is over, sent or not; at once when its caller left before it got here. */
function closed(response: Response): Promise<void> {
  return response.closed ? Promise.resolve() : new Promise((resolve) => void response.once('close', resolve));
}

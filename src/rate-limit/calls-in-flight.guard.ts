import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { callerOf } from '../auth/caller.js';
import { CallsInFlight } from './calls-in-flight.js';
import { inboundCallOf } from '../auth/inbound-call.js';

/** How many at once: refuses a call while too many run, of the key (429) or of the process (503). */
@Injectable()
export class CallsInFlightGuard implements CanActivate {
  constructor(private readonly calls: CallsInFlight) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const call = inboundCallOf(context);
    await this.calls.acquire(callerOf(call.subject).keyId, call.ended());
    return true;
  }
}

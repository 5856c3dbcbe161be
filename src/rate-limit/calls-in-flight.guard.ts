import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { callerOf } from '../auth/caller.js';
import { CallsInFlight } from './calls-in-flight.js';
import { exchangeOf } from '../auth/inbound-call.js';

/** How many at once: refuses a call while too many run, of the key (429) or of the process (503). */
@Injectable()
export class CallsInFlightGuard implements CanActivate {
  constructor(private readonly calls: CallsInFlight) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const exchange = exchangeOf(context);
    await this.calls.enter(callerOf(exchange.subject).keyId, exchange.ended());
    return true;
  }
}

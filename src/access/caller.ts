import type { Request } from 'express';
import type { Caller } from '../organizations/caller.js';

const callers = new WeakMap<object, Caller>();

/** Remembers who makes a request, once `ApiKeyGuard` has found out. */
export function setCaller(request: Request, caller: Caller): void {
  callers.set(request, caller);
}

/** Who makes a request. Throws where no guard has asked, so that a route without one fails closed. */
export function callerOf(request: Request): Caller {
  const caller = callers.get(request);
  if (!caller) throw new Error('The caller is unknown: the route lacks ApiKeyGuard.');
  return caller;
}

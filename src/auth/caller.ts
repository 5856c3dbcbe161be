import type { Caller } from '../organizations/caller.js';

const callers = new WeakMap<object, Caller>();

/** Remembers who makes a call, once `ApiKeyGuard` has found out. */
export function setCaller(subject: object, caller: Caller): void {
  callers.set(subject, caller);
}

/** Who makes a call, by its request or the context of its message. Throws where no guard has asked, so that a route without one fails closed. */
export function callerOf(subject: object): Caller {
  const caller = callers.get(subject);
  if (!caller) throw new Error('The caller is unknown: the route lacks ApiKeyGuard.');
  return caller;
}

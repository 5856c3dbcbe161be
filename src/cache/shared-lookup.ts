import { lookup as lookUp, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';

type Callback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/**
 * A `lookup` for sockets that looks a name up at most once at a time; concurrent callers share the result. A look-up occupies
 * one of the four threads of Node.js for as long as the name server takes, up to many seconds, also when the socket that
 * needed it is closed: a client that reconnects would occupy all of them, and every other look-up of the process would wait.
 */
export function sharedLookup(look: typeof lookUp = lookUp): LookupFunction {
  const waiting = new Map<string, Callback[]>();
  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options.all ?? false, options.family ?? 0, options.hints ?? 0]);
    const others = waiting.get(key);
    if (others) {
      others.push(callback);
      return;
    }
    waiting.set(key, [callback]);
    look(hostname, options, (error, address, family) => {
      const callbacks = waiting.get(key) ?? [];
      waiting.delete(key);
      for (const each of callbacks) each(error, address, family);
    });
  };
}

import type { ServerResponse } from 'node:http';

/** Given as the reason, because the default one is an exception whose stack trace costs time in every call. */
const ENDED = 'The response has ended.';

/** By response and not in `RequestContext`, because connections track responses before their context exists. */
const ends = new WeakMap<ServerResponse, AbortController>();

/**
 * A signal that aborts when a response has ended, whether or not it was sent completely. Unlike the 'close' event it can
 * be observed after the end too.
 */
export function responseEnd(response: ServerResponse): AbortSignal {
  return endOf(response).signal;
}

/** Calls back once when a response has ended, immediately if it already has. */
export function onResponseEnd(response: ServerResponse, callback: () => void): void {
  const { signal } = endOf(response);
  if (signal.aborted) callback();
  else signal.addEventListener('abort', callback, { once: true });
}

/**
 * Ends a response whose connection has closed. Node emits 'close' only for the response that it is writing, never for one
 * that is queued behind it.
 */
export function abandonResponse(response: ServerResponse): void {
  response.destroy();
  endOf(response).abort(ENDED);
}

function endOf(response: ServerResponse): AbortController {
  const known = ends.get(response);
  if (known) return known;
  const end = new AbortController();
  ends.set(response, end);
  if (response.closed) end.abort(ENDED);
  else response.once('close', () => end.abort(ENDED));
  return end;
}

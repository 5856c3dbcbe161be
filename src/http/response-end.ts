import type { ServerResponse } from 'node:http';

const ends = new WeakMap<ServerResponse, AbortController>();

/**
 * Aborts when a response has ended, whether or not all of it was sent. It is a state and not only an event: whoever asks
 * after the end still learns of it.
 */
export function responseEnd(response: ServerResponse): AbortSignal {
  return endOf(response).signal;
}

/** Calls back once when a response has ended, at once when it already has. */
export function onResponseEnd(response: ServerResponse, callback: () => void): void {
  const { signal } = endOf(response);
  if (signal.aborted) callback();
  else signal.addEventListener('abort', callback, { once: true });
}

/**
 * Ends a response whose connection has closed. Node does that only for the response that holds the socket: one that is
 * queued behind it never emits 'close'.
 */
export function abandonResponse(response: ServerResponse): void {
  response.destroy();
  endOf(response).abort();
}

function endOf(response: ServerResponse): AbortController {
  const known = ends.get(response);
  if (known) return known;
  const end = new AbortController();
  ends.set(response, end);
  if (response.closed) end.abort();
  else response.once('close', () => end.abort());
  return end;
}

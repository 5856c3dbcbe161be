import { connect } from 'node:net';
import { ResponseReader, type RawResponse } from './response-reader.js';
import type { FuzzRequest } from './fuzz-request.js';

/** The service has this long to close a connection whose client has closed its own side. */
const CLOSE_MS_MAX = 5_000;
/** How long a client with an incomplete request waits. */
const IDLE_MS = 3_000;

/** The result of the bytes sent over a connection. */
export interface Exchange {
  responses: readonly RawResponse[];
  /** Why the response is not HTTP. */
  fault: string | undefined;
  /** What the service failed to do in time. */
  hanging: 'no answer' | 'not closed' | undefined;
  /** Time until the last required response, or the end. */
  ms: number;
}

/** Sends the bytes over a raw connection, parses the responses, and waits for the connection to close. */
export function exchange(port: number, fuzzRequest: FuzzRequest, responseMsMax: number): Promise<Exchange> {
  const reader = new ResponseReader(fuzzRequest.methods);
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let respondedAtMs: number | undefined;
    let leaving = false;
    let timer: NodeJS.Timeout | undefined;
    const end = (hanging: Exchange['hanging']): void => {
      clearTimeout(timer);
      reader.end();
      socket.destroy();
      const { responses, fault } = reader;
      resolve({ responses, fault, hanging, ms: (respondedAtMs ?? performance.now()) - startedAtMs });
    };
    const allow = (ms: number, what: Exchange['hanging']): void => {
      clearTimeout(timer);
      timer = setTimeout(() => end(what), ms);
    };
    const disconnect = (): void => {
      respondedAtMs ??= performance.now();
      if (leaving) return;
      leaving = true;
      if (socket.writable) socket.end();
      allow(CLOSE_MS_MAX, 'not closed');
    };
    allow(responseMsMax, 'no answer');
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      if (
        reader.fault !== undefined ||
        (fuzzRequest.responsesMin > 0 && reader.responses.length >= fuzzRequest.responsesMin)
      )
        disconnect();
    });
    // A service that refuses a request may reset the connection while the client still writes.
    socket.on('error', () => undefined);
    socket.once('end', disconnect);
    socket.once('close', () => end(undefined));
    socket.write(fuzzRequest.bytes, () => {
      if (fuzzRequest.disconnects === 'at once') socket.destroy();
    });
    // Node treats a half-closed client as disconnected, so the client must not close its side before the response.
    if (fuzzRequest.disconnects === 'when silent') setTimeout(disconnect, IDLE_MS).unref();
  });
}

import { connect } from 'node:net';
import { ResponseReader, type RawResponse } from './response-reader.js';
import type { FuzzRequest } from './fuzz-request.js';

/** The service has this long to close a connection whose client has closed its own side. */
const CLOSE_MS_MAX = 5_000;
/** So long waits a client whose request is not whole. */
const IDLE_MS = 3_000;

/** What came of the bytes that were sent over a connection of their own. */
export interface Exchange {
  responses: readonly RawResponse[];
  /** Why what came back is not HTTP. */
  fault: string | undefined;
  /** What the service did not do in its time. */
  hanging: 'no answer' | 'not closed' | undefined;
  /** Until the last answer that was due, or the end. */
  ms: number;
}

/** Sends a shot over a raw connection, reads what comes back, and sees the connection closed. */
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
    // A service that refuses what it reads may reset the connection while it is still written to.
    socket.on('error', () => undefined);
    socket.once('end', disconnect);
    socket.once('close', () => end(undefined));
    socket.write(fuzzRequest.bytes, () => {
      if (fuzzRequest.disconnects === 'at once') socket.destroy();
    });
    // Node takes a client who closes his side for one who has left, so that he must not do it before an answer can come.
    if (fuzzRequest.disconnects === 'when silent') setTimeout(disconnect, IDLE_MS).unref();
  });
}

import { connect } from 'node:net';
import { AnswerReader, type RawAnswer } from './response-reader.js';
import type { Shot } from './fuzz-request.js';

/** The service has this long to close a connection whose client has closed its own side. */
const CLOSE_MS_MAX = 5_000;
/** So long waits a client whose request is not whole. */
const SILENCE_MS = 3_000;

/** What came of the bytes that were sent over a connection of their own. */
export interface Exchange {
  answers: readonly RawAnswer[];
  /** Why what came back is not HTTP. */
  fault: string | undefined;
  /** What the service did not do in its time. */
  hanging: 'no answer' | 'not closed' | undefined;
  /** Until the last answer that was due, or the end. */
  ms: number;
}

/** Sends a shot over a raw connection, reads what comes back, and sees the connection closed. */
export function exchange(port: number, shot: Shot, answerMsMax: number): Promise<Exchange> {
  const reader = new AnswerReader(shot.methods);
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let answeredAtMs: number | undefined;
    let leaving = false;
    let timer: NodeJS.Timeout | undefined;
    const end = (hanging: Exchange['hanging']): void => {
      clearTimeout(timer);
      reader.end();
      socket.destroy();
      const { answers, fault } = reader;
      resolve({ answers, fault, hanging, ms: (answeredAtMs ?? performance.now()) - startedAtMs });
    };
    const allow = (ms: number, what: Exchange['hanging']): void => {
      clearTimeout(timer);
      timer = setTimeout(() => end(what), ms);
    };
    const leave = (): void => {
      answeredAtMs ??= performance.now();
      if (leaving) return;
      leaving = true;
      if (socket.writable) socket.end();
      allow(CLOSE_MS_MAX, 'not closed');
    };
    allow(answerMsMax, 'no answer');
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      if (reader.fault !== undefined || (shot.answersMin > 0 && reader.answers.length >= shot.answersMin)) leave();
    });
    // A service that refuses what it reads may reset the connection while it is still written to.
    socket.on('error', () => undefined);
    socket.once('end', leave);
    socket.once('close', () => end(undefined));
    socket.write(shot.bytes, () => {
      if (shot.leaves === 'at once') socket.destroy();
    });
    // Node takes a client who closes his side for one who has left, so that he must not do it before an answer can come.
    if (shot.leaves === 'when silent') setTimeout(leave, SILENCE_MS).unref();
  });
}

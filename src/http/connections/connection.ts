import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { abandonResponse, onResponseEnd, responseEnd } from '../response-end.js';

/** Consecutive checks without progress after which a reader is stalled. */
export const SILENT_CHECKS_MAX = 10;
/** Pipelined requests of one connection; real clients pipeline a few. */
const PIPELINED_MAX = 1_000;
/** The socket's timer expires before the next check, so that the check sees its result. */
const TIMER_SHARE = 0.8;

/** One open connection of the HTTP server, with the responses in progress on it. */
export class Connection {
  /** A request has arrived on it. */
  used = false;
  /** Oldest first: Node writes that one to the socket and queues the others behind it. */
  private readonly responses = new Set<ServerResponse>();
  /** Handlers that start when their response is the oldest. */
  private readonly queued = new Map<ServerResponse, () => void>();
  private readonly reader: StallDetector;
  private refusal: (() => void) | undefined;
  private refused = false;

  constructor(private readonly socket: Socket) {
    this.reader = new StallDetector(socket);
    socket.on('timeout', () => this.timedOut());
    socket.once('close', () => this.abandon());
  }

  /** Tracks a response from the arrival of its request until its end. */
  add(response: ServerResponse): void {
    this.used = true;
    this.responses.add(response);
    onResponseEnd(response, () => {
      this.responses.delete(response);
      this.queued.delete(response);
      this.startQueued();
      if (this.refusal) this.refuseWhenIdle(this.refusal);
    });
    if (this.socket.closed) abandonResponse(response);
    else if (this.responses.size > PIPELINED_MAX) this.socket.destroy();
  }

  /** Calls back when every earlier response has ended; never if the connection closes before that. */
  whenOldest(response: ServerResponse, callback: () => void): void {
    if (responseEnd(response).aborted) return;
    this.queued.set(response, callback);
    this.startQueued();
  }

  /** Destroys the connection of a stalled reader. Must be called at regular intervals. */
  checkReader(intervalMs: number): void {
    if (this.responses.size === 0) this.reader.reset();
    else if (!this.refused && this.reader.check(intervalMs * TIMER_SHARE) >= SILENT_CHECKS_MAX) this.socket.destroy();
  }

  /**
   * Refuses a request that cannot be parsed, and everything after it, once the earlier requests have their responses.
   *
   * @param write writes the response and ends the connection
   */
  refuse(write: () => void): void {
    if (this.refusal || this.refused) return;
    this.refusal = write;
    this.refuseWhenIdle(write);
  }

  private startQueued(): void {
    const [oldest] = this.responses;
    const start = oldest && this.queued.get(oldest);
    if (!start || this.socket.destroyed) return;
    this.queued.delete(oldest);
    start();
  }

  private refuseWhenIdle(write: () => void): void {
    const [oldest] = this.responses;
    // An incomplete request is the one that cannot be parsed; its handler would wait for the rest forever.
    if (oldest?.req.complete) return;
    this.refusal = undefined;
    this.refused = true;
    // Within a response the client would read the refusal as part of its body.
    if (oldest?.headersSent) this.socket.destroy();
    // If not writable, the last response has closed the connection.
    else if (this.socket.writable) write();
  }

  private timedOut(): void {
    if (this.responses.size > 0) this.reader.timedOut();
    // Node's keep-alive timer.
    else this.socket.destroy();
  }

  private abandon(): void {
    this.refusal = undefined;
    for (const response of [...this.responses]) abandonResponse(response);
  }
}

/**
 * Distinguishes a stalled reader from a slow one, and counts only the time in which bytes are buffered for it. Only the
 * socket's timer shows progress within one large write: Node restarts it for each part that is sent. Node also restarts
 * it when the client sends data, which is not progress.
 */
class StallDetector {
  private watching = false;
  private quiet = false;
  private silentChecks = 0;
  private sentBytes = 0;
  private receivedBytes = 0;

  constructor(private readonly socket: Socket) {}

  /** The socket had no activity for the duration of its timer. */
  timedOut(): void {
    this.quiet = true;
  }

  /** @returns the number of consecutive checks that found buffered bytes and no progress */
  check(timerMs: number): number {
    const { socket } = this;
    if (socket.writableLength === 0) {
      if (this.watching) socket.setTimeout(0);
      this.reset();
      return 0;
    }
    const sentBytes = socket.bytesWritten - socket.writableLength;
    const receivedBytes = socket.bytesRead;
    const silent = sentBytes === this.sentBytes && (this.quiet || receivedBytes !== this.receivedBytes);
    this.silentChecks = this.watching && silent ? this.silentChecks + 1 : 0;
    this.watching = true;
    this.quiet = false;
    this.sentBytes = sentBytes;
    this.receivedBytes = receivedBytes;
    socket.setTimeout(timerMs);
    return this.silentChecks;
  }

  /** Without a response in progress Node uses the timer for its keep-alive timeout. */
  reset(): void {
    this.watching = false;
    this.quiet = false;
    this.silentChecks = 0;
  }
}

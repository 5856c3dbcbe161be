import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { abandonResponse, onResponseEnd, responseEnd } from './response-end.js';

/** Checks in a row without progress after which a reader counts as stalled. */
export const SILENT_CHECKS_MAX = 10;
/** Requests of one connection that may wait for their responses; no client pipelines more than a few. */
const PIPELINED_MAX = 1_000;
/** The socket's own timer runs out before the next check, so that the check sees its result. */
const TIMER_SHARE = 0.8;

/** One open connection of the HTTP server, with the responses in progress on it. */
export class Connection {
  /** A request has arrived on it. */
  used = false;
  /** The oldest first: that one holds the socket, the others are queued behind it. */
  private readonly responses = new Set<ServerResponse>();
  /** What begins only when its response holds the socket. */
  private readonly turns = new Map<ServerResponse, () => void>();
  private readonly reader: ReaderWatch;
  private refusal: (() => void) | undefined;
  private refused = false;

  constructor(private readonly socket: Socket) {
    this.reader = new ReaderWatch(socket);
    socket.on('timeout', () => this.timedOut());
    socket.once('close', () => this.abandon());
  }

  /** Follows a response from the arrival of its request on. */
  add(response: ServerResponse): void {
    this.used = true;
    this.responses.add(response);
    onResponseEnd(response, () => {
      this.responses.delete(response);
      this.turns.delete(response);
      this.beginTurn();
      if (this.refusal) this.refuseInTurn(this.refusal);
    });
    if (this.socket.closed) abandonResponse(response);
    else if (this.responses.size > PIPELINED_MAX) this.socket.destroy();
  }

  /** Calls back when every response before this one has ended; never when the connection closes before that. */
  onTurn(response: ServerResponse, callback: () => void): void {
    if (responseEnd(response).aborted) return;
    this.turns.set(response, callback);
    this.beginTurn();
  }

  /** Destroys the connection of a reader who takes nothing. To be called at regular intervals. */
  checkReader(intervalMs: number): void {
    if (this.responses.size === 0) this.reader.reset();
    else if (!this.refused && this.reader.check(intervalMs * TIMER_SHARE) >= SILENT_CHECKS_MAX) this.socket.destroy();
  }

  /**
   * Refuses what cannot be read as a request, once the requests before it are answered, and with it all that follows.
   *
   * @param write writes the refusal and ends the connection
   */
  refuse(write: () => void): void {
    if (this.refusal || this.refused) return;
    this.refusal = write;
    this.refuseInTurn(write);
  }

  private beginTurn(): void {
    const [oldest] = this.responses;
    const begin = oldest && this.turns.get(oldest);
    if (!begin || this.socket.destroyed) return;
    this.turns.delete(oldest);
    begin();
  }

  private refuseInTurn(write: () => void): void {
    const [oldest] = this.responses;
    // A request that has not arrived whole is the one that cannot be read: its handler may wait for the rest for ever.
    if (oldest?.req.complete) return;
    this.refusal = undefined;
    this.refused = true;
    // In the middle of a response the refusal would be read as a part of it.
    if (oldest?.headersSent) this.socket.destroy();
    // Otherwise the last response has closed the connection already.
    else if (this.socket.writable) write();
  }

  private timedOut(): void {
    if (this.responses.size > 0) this.reader.timedOut();
    // Node's timer of an idle connection.
    else this.socket.destroy();
  }

  private abandon(): void {
    this.refusal = undefined;
    for (const response of [...this.responses]) abandonResponse(response);
  }
}

/**
 * Tells a reader who takes nothing from one who is slow, and counts only time in which bytes wait for the reader. Node
 * shows in one place only that part of a large write was taken: the timer of a socket starts again then. It also starts
 * again when the client sends something, which is no sign that it reads.
 */
class ReaderWatch {
  private watching = false;
  private quiet = false;
  private silentChecks = 0;
  private takenBytes = 0;
  private receivedBytes = 0;

  constructor(private readonly socket: Socket) {}

  /** Nothing at all has happened on the socket for as long as its timer. */
  timedOut(): void {
    this.quiet = true;
  }

  /** @returns how many checks in a row have found bytes waiting and none taken */
  check(timerMs: number): number {
    const { socket } = this;
    if (socket.writableLength === 0) {
      if (this.watching) socket.setTimeout(0);
      this.reset();
      return 0;
    }
    const takenBytes = socket.bytesWritten - socket.writableLength;
    const receivedBytes = socket.bytesRead;
    const silent = takenBytes === this.takenBytes && (this.quiet || receivedBytes !== this.receivedBytes);
    this.silentChecks = this.watching && silent ? this.silentChecks + 1 : 0;
    this.watching = true;
    this.quiet = false;
    this.takenBytes = takenBytes;
    this.receivedBytes = receivedBytes;
    socket.setTimeout(timerMs);
    return this.silentChecks;
  }

  /** For a connection without a response: its timer belongs to Node, which closes idle connections with it. */
  reset(): void {
    this.watching = false;
    this.quiet = false;
    this.silentChecks = 0;
  }
}

import type { Socket } from 'node:net';
import { TcpSocket } from '@nestjs/microservices';
import { FrameError, FrameReader, type FrameFault } from './frame-reader.js';
import { readPacket } from './message-reader.js';
import { ConnectionCalls, type MessageLimits, type PendingMessages } from './message-transport.js';

/** Size of one write. Its callback is the only sign that the reader takes bytes, so a write is small. */
const WRITE_BYTES = 16 * 1024;
/** Unsent bytes above which no more messages are read from a connection. */
const WAITING_BYTES_HIGH = 64 * 1024;
/** Messages of one connection that are started before the other connections are served. */
const MESSAGES_PER_TURN = 32;

/** Why the service closed a connection. */
export type ConnectionFault =
  | FrameFault
  | 'not_a_message'
  | 'unfinished_frame'
  | 'idle'
  | 'stalled_reader'
  | 'too_many_bytes_waiting'
  | 'too_many_bytes_incoming';

/** State that all connections of a server share. */
export interface ConnectionHost {
  readonly limits: MessageLimits;
  readonly pending: PendingMessages;
  /** Bytes of unfinished messages, over all connections. */
  incomingBytes: number;
  report(fault: ConnectionFault): void;
}

interface Waiter {
  resolve: () => void;
  /** Total bytes of the connection that the reader has to take first. */
  afterBytes: number;
}

/**
 * One connection of a caller, in the framing of Nest's TCP transport. All its buffers are bounded, and its number of
 * listeners is fixed. Messages are read no faster than the reader takes their responses.
 */
export class TcpConnection extends TcpSocket {
  readonly calls: ConnectionCalls;
  private readonly reader: FrameReader;
  private readonly outgoing: Buffer[] = [];
  private readonly waiters = new Set<Waiter>();
  private waitingBytes = 0;
  private takenBytes = 0;
  private writing = false;
  private nextTurn: NodeJS.Immediate | undefined;
  private countedBytes = 0;
  /** The last time that no bytes were waiting or some were taken. */
  private readerActiveAtMs = performance.now();
  /** When the first bytes of the unfinished message arrived. */
  private unfinishedSinceMs: number | undefined;
  private activeAtMs = performance.now();

  constructor(
    socket: Socket,
    private readonly host: ConnectionHost,
  ) {
    super(socket);
    this.reader = new FrameReader(host.limits.messageBytesMax);
    this.calls = new ConnectionCalls(host.pending, () => this.resume());
    socket.once('close', () => this.closed());
  }

  /** Resolves when more may be sent or the connection is closed. */
  room(): Promise<void> {
    return this.untilWritten(this.takenBytes + this.waitingBytes - WAITING_BYTES_HIGH);
  }

  /** Resolves when the reader has taken everything sent so far, or the connection is closed. */
  flushed(): Promise<void> {
    return this.untilWritten(this.takenBytes + this.waitingBytes);
  }

  /** Closes the connection when a time limit has passed. To be called at regular intervals. */
  check(nowMs: number): void {
    const { messageMs, idleMs, stalledReaderMs } = this.host.limits;
    if (this.waitingBytes > 0 && nowMs - this.readerActiveAtMs >= stalledReaderMs) this.refuse('stalled_reader');
    else if (this.unfinishedSinceMs !== undefined && nowMs - this.unfinishedSinceMs >= messageMs)
      this.refuse('unfinished_frame');
    else if (!this.calls.isIdle || this.waitingBytes > 0) this.activeAtMs = nowMs;
    else if (nowMs - this.activeAtMs >= idleMs) this.refuse('idle');
  }

  protected override handleSend(message: unknown, callback?: (error?: unknown) => void): void {
    const text = JSON.stringify(message);
    const frame = Buffer.from(`${text.length}#${text}`);
    if (this.waitingBytes === 0) this.readerActiveAtMs = performance.now();
    this.outgoing.push(frame);
    this.waitingBytes += frame.length;
    if (this.waitingBytes > this.host.limits.waitingBytesMax) this.refuse('too_many_bytes_waiting');
    else this.write();
    if (callback) void this.flushed().then(() => callback());
  }

  protected override handleData(data: Buffer | string): void {
    if (this.socket.destroyed) return;
    this.reader.push(typeof data === 'string' ? Buffer.from(data) : data);
    if (!this.nextTurn) this.readMessages();
  }

  /** Starts the messages that have arrived, up to the limits of the connection. */
  private readMessages(): void {
    try {
      let read = 0;
      for (; read < MESSAGES_PER_TURN && this.mayRead; read += 1) {
        const text = this.reader.next();
        if (text === undefined) break;
        this.start(text);
      }
      this.pauseOrResume(read === MESSAGES_PER_TURN);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.refuse(error.fault);
    }
  }

  private start(text: string): void {
    const packet = readPacket(parsed(text));
    this.unfinishedSinceMs = undefined;
    this.activeAtMs = performance.now();
    if (packet) this.socket.emit('message', packet);
    else this.refuse('not_a_message');
  }

  private get mayRead(): boolean {
    const { limits, pending } = this.host;
    const { pendingCount } = this.calls;
    if (this.socket.destroyed || this.waitingBytes > WAITING_BYTES_HIGH) return false;
    // Each connection may always have one pending message, whatever the others do.
    return pendingCount === 0 || (pendingCount < limits.pendingPerConnectionMax && pending.count < limits.pendingMax);
  }

  private pauseOrResume(isTurnOver: boolean): void {
    const { socket, reader } = this;
    if (socket.destroyed) return;
    reader.detach();
    if (!this.countIncoming(reader.bufferedBytes)) return;
    const waits = isTurnOver || !this.mayRead;
    if (isTurnOver) this.readInNextTurn();
    // A message that the service does not read is not late.
    if (waits || !reader.isUnfinished) this.unfinishedSinceMs = undefined;
    else this.unfinishedSinceMs ??= performance.now();
    if (waits) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  /** Resumes a paused connection. */
  private resume(): void {
    if (!this.socket.destroyed && this.socket.isPaused()) this.readInNextTurn();
  }

  private readInNextTurn(): void {
    this.nextTurn ??= setImmediate(() => {
      this.nextTurn = undefined;
      this.readMessages();
    });
  }

  private countIncoming(bytes: number): boolean {
    const { host } = this;
    host.incomingBytes += bytes - this.countedBytes;
    this.countedBytes = bytes;
    if (bytes === 0 || host.incomingBytes <= host.limits.incomingBytesMax) return true;
    this.refuse('too_many_bytes_incoming');
    return false;
  }

  /** One small write at a time: the callback of a larger write comes only after its last byte. */
  private write(): void {
    const { socket, outgoing } = this;
    if (this.writing || outgoing.length === 0 || socket.destroyed) return;
    const bytes = takeBytes(outgoing, WRITE_BYTES);
    this.writing = true;
    socket.write(bytes, (error) => {
      this.writing = false;
      if (error) return;
      this.waitingBytes -= bytes.length;
      this.takenBytes += bytes.length;
      this.readerActiveAtMs = performance.now();
      this.write();
      this.wake();
      if (this.waitingBytes <= WAITING_BYTES_HIGH) this.resume();
    });
  }

  private untilWritten(afterBytes: number): Promise<void> {
    if (afterBytes <= this.takenBytes || this.socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => void this.waiters.add({ resolve, afterBytes }));
  }

  private wake(): void {
    for (const waiter of this.waiters) {
      if (waiter.afterBytes > this.takenBytes && !this.socket.destroyed) continue;
      this.waiters.delete(waiter);
      waiter.resolve();
    }
  }

  private refuse(fault: ConnectionFault): void {
    if (this.socket.destroyed) return;
    this.host.report(fault);
    this.socket.destroy();
  }

  private closed(): void {
    clearImmediate(this.nextTurn);
    this.outgoing.length = 0;
    this.countIncoming(0);
    this.calls.close();
    this.wake();
  }
}

/** Removes about `count` bytes from the front of a list; a larger piece is split. */
function takeBytes(pieces: Buffer[], count: number): Buffer {
  const [first] = pieces;
  if (first && first.length > count) {
    pieces[0] = first.subarray(count);
    return first.subarray(0, count);
  }
  let [length, taken] = [0, 0];
  for (const piece of pieces) {
    if (length + piece.length > count) break;
    length += piece.length;
    taken += 1;
  }
  return Buffer.concat(pieces.splice(0, taken), length);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

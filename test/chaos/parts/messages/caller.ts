import { connect, type Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { at } from '../../harness/transcripts.js';

/** The result of a message: the type of its last event, or its error code. */
export type MessageEnd = string;

/** A bare connection in the framing of Nest's TCP transport. It reads nothing until `read`. */
export class Caller {
  closed = false;
  readonly socket: Socket;
  private readonly waiting = new Map<string, (end: MessageEnd) => void>();
  private readonly last = new Map<string, MessageEnd>();
  private readonly decoder = new StringDecoder();
  private text = '';
  private count = 0;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1' });
    this.socket.on('error', () => undefined);
    this.socket.once('close', () => {
      this.closed = true;
      for (const end of this.waiting.values()) end('closed');
      this.waiting.clear();
    });
  }

  read(): this {
    this.socket.on('data', (chunk: Buffer) => this.take(chunk));
    return this;
  }

  send(bytes: string | Buffer): this {
    if (this.socket.writable) this.socket.write(bytes);
    return this;
  }

  /** Sends a message and waits for the end of its reply, or of the connection. */
  request(data: object): Promise<MessageEnd> {
    if (this.closed) return Promise.resolve('closed');
    const id = String((this.count += 1));
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.send(frameOf({ id, pattern: 'channels.transcripts', data }));
    });
  }

  private take(chunk: Buffer): void {
    this.text += this.decoder.write(chunk);
    for (;;) {
      const hash = this.text.indexOf('#');
      const length = Number(this.text.slice(0, hash));
      if (hash === -1 || this.text.length < hash + 1 + length) return;
      this.note(JSON.parse(this.text.slice(hash + 1, hash + 1 + length)));
      this.text = this.text.slice(hash + 1 + length);
    }
  }

  private note(packet: unknown): void {
    const id = String(at(packet, 'id'));
    const event = at(packet, 'response', 'type');
    const error = at(packet, 'err');
    if (typeof event === 'string') this.last.set(id, event);
    const code = at(error, 'error', 'code');
    if (error !== undefined) this.last.set(id, typeof code === 'string' ? code : 'an error without a code');
    if (at(packet, 'isDisposed') !== true) return;
    this.waiting.get(id)?.(this.last.get(id) ?? 'nothing');
    this.waiting.delete(id);
    this.last.delete(id);
  }
}

export function frameOf(packet: unknown): string {
  const text = JSON.stringify(packet);
  return `${text.length}#${text}`;
}

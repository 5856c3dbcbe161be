import { connect, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { TcpContext } from '@nestjs/microservices';
import { from, Observable, of } from 'rxjs';
import { MESSAGE_LIMITS, MessageFaults, type MessageLimits } from '../../src/messages/message-transport.js';
import { TcpMessages } from '../../src/messages/tcp-server.js';
import { until } from '../until.js';

const TIME_MS = 400;
const KILOBYTE = 1024;
const MEGABYTE = KILOBYTE * KILOBYTE;

/** One end of a connection in the test; it reads only when `read` is called. */
class Caller {
  text = '';
  closed = false;

  private constructor(readonly socket: Socket) {
    socket.on('error', () => undefined);
    socket.once('close', () => (this.closed = true));
  }

  static async to(server: TcpMessages): Promise<Caller> {
    const { port, hostname } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    const caller = new Caller(socket);
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    return caller;
  }

  read(): this {
    this.socket.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
    return this;
  }

  send(pattern: string, id = '1'): this {
    const text = JSON.stringify({ id, pattern, data: {} });
    this.socket.write(`${text.length}#${text}`);
    return this;
  }

  get responses(): number {
    return this.text.split('"isDisposed":true').length - 1;
  }
}

describe('the TCP server for messages', () => {
  let server: TcpMessages;
  let callers: Caller[] = [];
  let faults: string[] = [];
  /** Messages of the pattern `long`. */
  let running = 0;
  /** The service's ends of the connections. */
  let ends: Socket[] = [];

  const start = async (limits: Partial<MessageLimits> = {}): Promise<void> => {
    [callers, faults, ends] = [[], [], []];
    const environment = { MESSAGE_HOST: '127.0.0.1', MESSAGE_PORT: 0 };
    const log = new MessageFaults();
    log.report = (fault) => void faults.push(fault);
    server = new TcpMessages(environment, { ...MESSAGE_LIMITS, ...limits }, log);
    server.addHandler('echo', () => Promise.resolve(of('echo')));
    server.addHandler('large', (_data, context: TcpContext) => {
      const replyChannel = server.replyChannel(context);
      // As in the service: the response goes on when the reader has taken an event.
      const events = async function* (): AsyncGenerator<string> {
        yield 'x'.repeat(16 * MEGABYTE);
        await replyChannel.taken();
      };
      return Promise.resolve(from(events()));
    });
    server.addHandler('long', (_data, context: TcpContext) => {
      // As in the service: a running message is registered with its connection.
      const outlet = server.replyChannel(context);
      return Promise.resolve(
        new Observable((subscriber) => {
          running += 1;
          const end = outlet.connection.begin(() => subscriber.complete());
          return () => {
            running -= 1;
            end();
          };
        }),
      );
    });
    await new Promise<void>((resolve) => server.listen(() => resolve()));
    server.unwrap<Server>().on('connection', (socket: Socket) => void ends.push(socket));
  };
  const join = async (): Promise<Caller> => {
    const caller = await Caller.to(server);
    callers.push(caller);
    return caller;
  };
  afterEach(() => {
    for (const { socket } of callers) socket.destroy();
    server.close();
  });

  it('closes a connection on which the rest of a message does not arrive', async () => {
    await start({ messageMs: TIME_MS });
    const caller = (await join()).read();
    caller.socket.write('5000#{');
    await until(() => caller.closed);
    expect(faults).toEqual(['invalid_data']);
  });

  it('closes an idle connection', async () => {
    await start({ idleMs: TIME_MS });
    const idle = (await join()).read();
    await until(() => idle.closed);
  });

  it('closes the connection of a client that reads nothing', async () => {
    await start({ stalledReaderMs: TIME_MS });
    (await join()).send('large');
    await until(() => ends[0]?.destroyed === true);
  });

  it('does not close the connection of a slow reader, even long after the timeout for stalled readers', async () => {
    await start({ stalledReaderMs: 2 * TIME_MS });
    const { socket } = (await join()).send('large');
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      socket.pause();
    });
    // At most 64 KB each time: more than four times the timeout in all.
    const reading = setInterval(() => socket.resume(), TIME_MS / 64);
    await until(() => bytes > 16 * MEGABYTE || ends[0]?.destroyed === true, 30_000);
    clearInterval(reading);
    expect(bytes).toBeGreaterThan(16 * MEGABYTE);
  });

  it('refuses connections above the total limit', async () => {
    await start({ connectionsMax: 2 });
    for (let index = 0; index < 2; index += 1) (await join()).read();
    const refused = (await join()).read();
    await until(() => refused.closed);
    expect(faults).toEqual(['too_many_connections']);
  });

  it.each([
    ['bytes that are not a frame', 'GET /# HTTP/1.1\r\n\r\n', 'invalid_data'],
    ['a message that is too large', `100000#${'x'.repeat(400 * KILOBYTE)}`, 'invalid_data'],
    ['a frame that is not JSON', '4#{"a"', 'invalid_data'],
  ])('closes a connection that sends %s', async (_name, text, fault) => {
    await start();
    const caller = (await join()).read();
    caller.socket.write(text);
    await until(() => caller.closed);
    expect(new Set(faults)).toEqual(new Set([fault]));
  });

  it('reads any number of messages that arrive at once', async () => {
    await start();
    const caller = (await join()).read();
    const text = JSON.stringify({ id: '1', pattern: 'echo', data: { padding: 'x'.repeat(5 * KILOBYTE) } });
    caller.socket.write(`${text.length}#${text}`.repeat(200));
    await until(() => caller.responses === 200);
    expect(faults).toEqual([]);
  });

  it('adds no listeners for thousands of messages on one connection', async () => {
    await start();
    const caller = (await join()).read().send('echo', '0');
    await until(() => caller.responses === 1);
    const [end] = ends;
    const listeners = (): number =>
      (end?.eventNames() ?? []).reduce((sum, name) => sum + (end?.listenerCount(name) ?? 0), 0);
    const before = listeners();
    for (let index = 1; index < 3_000; index += 1) caller.send('echo', String(index));
    let most = 0;
    await until(() => (most = Math.max(most, listeners())) > 0 && caller.responses === 3_000, 20_000);
    // Waiting for the reader and pausing add no listener either.
    expect(most).toBeLessThanOrEqual(before + 1);
    expect(listeners()).toBe(before);
  });

  it('ends the running messages of a caller that disconnects', async () => {
    await start();
    const caller = (await join()).read().send('long');
    await until(() => running === 1);
    caller.socket.destroy();
    await until(() => running === 0);
  });

  it('logs nothing for an event of an unknown pattern, and replies to such a message', async () => {
    await start();
    const caller = (await join()).read();
    const event = JSON.stringify({ pattern: 'x'.repeat(100), data: 1 });
    caller.socket.write(`${event.length}#${event}`);
    caller.send('nothing');
    await until(() => caller.text.includes('no matching message handler'));
    expect(faults).toEqual(['unknown_pattern']);
  });
});

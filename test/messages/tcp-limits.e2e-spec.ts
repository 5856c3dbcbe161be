import { connect, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { TcpContext } from '@nestjs/microservices';
import { Observable, of } from 'rxjs';
import { MESSAGE_LIMITS, MessageFaults, type MessageLimits } from '../../src/messages/message-transport.js';
import type { ConnectionHost } from '../../src/messages/tcp-connection.js';
import { TcpMessages } from '../../src/messages/tcp-server.js';
import { until } from '../until.js';

const TIME_MS = 400;
const KILOBYTE = 1024;
/** More than one write, and less than the limit at which the service stops reading. */
const SOME_BYTES = 48 * KILOBYTE;
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
  /** The service's ends of the connections. */
  let ends: Socket[] = [];

  const start = async (limits: Partial<MessageLimits> = {}): Promise<void> => {
    [callers, faults, ends] = [[], [], []];
    const environment = { MESSAGE_HOST: '127.0.0.1', MESSAGE_PORT: 0 };
    const log = new MessageFaults();
    log.report = (fault) => void faults.push(fault);
    server = new TcpMessages(environment, { ...MESSAGE_LIMITS, checkMs: 20, ...limits }, log);
    server.addHandler('echo', () => Promise.resolve(of('echo')));
    server.addHandler('some', () => Promise.resolve(of('x'.repeat(SOME_BYTES))));
    server.addHandler('large', () => Promise.resolve(of('x'.repeat(16 * MEGABYTE))));
    server.addHandler('long', (_data, context: TcpContext) => {
      // As in the service: a running message is registered with its connection.
      const outlet = server.replyChannel(context);
      return Promise.resolve(
        new Observable((subscriber) => {
          const slot = outlet.begin(() => subscriber.complete());
          return () => slot.ended();
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

  it('closes a connection whose frame does not arrive completely in time, even if bytes keep arriving', async () => {
    await start({ messageMs: TIME_MS });
    const caller = (await join()).read();
    const dribble = setInterval(() => caller.socket.write('x'), 20);
    caller.socket.write('5000#');
    await until(() => caller.closed);
    clearInterval(dribble);
    expect(faults).toEqual(['unfinished_frame']);
  });

  it('closes an idle connection, but not one with a running message', async () => {
    await start({ idleMs: TIME_MS });
    const [idle, busy] = [(await join()).read(), (await join()).read()];
    busy.send('long');
    await until(() => idle.closed);
    // Twice the timeout: long enough for the other connection to be closed.
    await until(() => faults.length === 1);
    const again = (await join()).read();
    await until(() => again.closed);
    expect(busy.closed).toBe(false);
  });

  it('closes the connection of a client that reads nothing although it continues to send', async () => {
    await start({ stalledReaderMs: TIME_MS, messageMs: 60_000 });
    const caller = await join();
    await until(() => ends.length === 1);
    const isTaken = (): boolean => ends[0]?.writableLength === 0;
    // The buffered replies stay small enough for the service to continue reading.
    for (let id = 1; isTaken(); id += 1) {
      const before = ends[0]?.bytesWritten ?? 0;
      caller.send('some', String(id));
      await until(() => (ends[0]?.bytesWritten ?? 0) > before);
      await until(isTaken, TIME_MS / 4).catch(() => undefined);
    }
    const sending = setInterval(() => caller.socket.write('x'), 20);
    caller.socket.write('60000#');
    await until(() => ends[0]?.destroyed === true);
    clearInterval(sending);
    expect(faults).toEqual(['stalled_reader']);
  });

  it('does not close the connection of a slow reader, even long after the timeout for stalled readers', async () => {
    await start({ stalledReaderMs: TIME_MS });
    const { socket } = (await join()).send('large');
    const startedAtMs = performance.now();
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      socket.pause();
    });
    // Evenly over three times the timeout.
    const reading = setInterval(() => {
      const share = (performance.now() - startedAtMs) / (3 * TIME_MS);
      if (bytes <= share * 16 * MEGABYTE) socket.resume();
    }, 4);
    await until(() => bytes > 16 * MEGABYTE || ends[0]?.destroyed === true, 20_000);
    clearInterval(reading);
    expect(performance.now() - startedAtMs).toBeGreaterThan(2 * TIME_MS);
    expect(faults).toEqual([]);
    expect(ends[0]?.destroyed).toBe(false);
  });

  it('refuses connections above the limit per address, and accepts them again when others have ended', async () => {
    await start({ connectionsPerAddressMax: 3 });
    for (let index = 0; index < 3; index += 1) (await join()).read();
    const refused = (await join()).read();
    await until(() => refused.closed);
    expect(faults).toEqual(['too_many_connections_of_address']);
    callers[0]?.socket.destroy();
    await until(() => ends[0]?.destroyed === true);
    const taken = (await join()).read().send('echo');
    await until(() => taken.responses === 1);
  });

  it('refuses connections above the total limit', async () => {
    await start({ connectionsMax: 2 });
    for (let index = 0; index < 2; index += 1) (await join()).read();
    const refused = (await join()).read();
    await until(() => refused.closed);
    expect(faults).toEqual(['too_many_connections']);
  });

  it('closes only the connection whose unfinished frame exceeds the total limit of buffered bytes', async () => {
    await start({ incomingBytesMax: 100 * KILOBYTE });
    const half = `60000#${'x'.repeat(40 * KILOBYTE)}`;
    const [first, second, third] = [(await join()).read(), (await join()).read(), (await join()).read()];
    for (const caller of [first, second]) caller.socket.write(half);
    await until(() => ends.slice(0, 2).every((end) => end.bytesRead === half.length));
    third.socket.write(half);
    await until(() => third.closed);
    expect(faults).toEqual(['too_many_bytes_incoming']);
    expect([first.closed, second.closed]).toEqual([false, false]);
    // The slots of a connection are free again when it ends.
    first.socket.destroy();
    await until(() => ends[0]?.destroyed === true);
    const fourth = (await join()).read();
    fourth.socket.write(half);
    await until(() => ends.at(-1)?.bytesRead === half.length);
    expect(faults).toHaveLength(1);
  });

  it.each([
    ['bytes that are not a frame', 'GET / HTTP/1.1\r\n\r\n', 'malformed_frame'],
    ['a frame that is too large, by its length alone', '65537#', 'frame_too_large'],
    ['a frame that is not JSON', '4#{"a"', 'not_a_message'],
    ['a frame that is not a message', '1#1', 'not_a_message'],
  ])('closes a connection that sends %s', async (_name, text, fault) => {
    await start();
    const caller = (await join()).read();
    caller.socket.write(text.repeat(1_000));
    await until(() => caller.closed);
    expect(faults).toEqual([fault]);
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

  it('starts at most the allowed number of messages in the guards, and the rest when those have ended', async () => {
    await start({ pendingPerConnectionMax: 5 });
    let begun = 0;
    const waiting: (() => void)[] = [];
    server.addHandler('guarded', (_data, context: TcpContext) => {
      const slot = server.replyChannel(context).begin(() => undefined);
      begun += 1;
      return new Promise((resolve) => {
        waiting.push(() => {
          slot.ended();
          resolve(of('done'));
        });
      });
    });
    const caller = (await join()).read();
    for (let index = 0; index < 100; index += 1) caller.send('guarded', String(index));
    await until(() => begun > 0);
    // One iteration's worth may have started before the first was counted.
    expect(begun).toBeLessThan(40);
    await until(() => {
      waiting.splice(0).forEach((end) => end());
      return caller.responses === 100;
    });
    expect(begun).toBe(100);
  });

  it('ends the running messages of a caller that disconnects', async () => {
    await start();
    const caller = (await join()).read().send('long');
    await until(() => ends.length === 1 && (ends[0]?.bytesRead ?? 0) > 0);
    const { pending } = Reflect.get(server, 'shared') as ConnectionHost;
    await until(() => pending.count === 1);
    caller.socket.destroy();
    await until(() => pending.count === 0);
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

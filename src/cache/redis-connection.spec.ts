import type { lookup } from 'node:dns';
import { createServer, connect, type AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { sharedLookup } from './redis-connection.js';

/** A name server whose responses wait for `respond`. */
function slowNameServer() {
  const pending: (() => void)[] = [];
  let lookups = 0;
  const look = ((_hostname: string, _options: object, callback: (...result: unknown[]) => void) => {
    lookups += 1;
    pending.push(() => callback(null, [{ address: '127.0.0.1', family: 4 }]));
  }) as unknown as typeof lookup;
  return {
    look,
    count: () => lookups,
    respond: () => pending.splice(0).forEach((each) => each()),
  };
}

describe('sharedLookup', () => {
  it('looks a name up once at a time, however many sockets need it', async () => {
    const server = slowNameServer();
    const shared = sharedLookup(server.look);
    const found = Array.from(
      { length: 20 },
      () => new Promise((resolve) => shared('valkey', { all: true }, (_error, address) => resolve(address))),
    );
    expect(server.count()).toBe(1);
    server.respond();
    expect(new Set(await Promise.all(found)).size).toBe(1);
    shared('valkey', { all: true }, () => undefined);
    expect(server.count()).toBe(2);
  });

  it('looks different names up separately, and reports a failure to every caller', async () => {
    const shared = sharedLookup(((_hostname: string, _options: object, callback: (error: Error) => void) =>
      setImmediate(callback, new Error('ENOTFOUND'))) as unknown as typeof lookup);
    const failures = ['one', 'one', 'other'].map(
      (name) => new Promise((resolve) => shared(name, {}, (error) => resolve(error?.message))),
    );
    expect(await Promise.all(failures)).toEqual(['ENOTFOUND', 'ENOTFOUND', 'ENOTFOUND']);
  });

  it('connects a socket', async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const socket = connect({
      host: 'localhost',
      port: (server.address() as AddressInfo).port,
      family: 4,
      lookup: sharedLookup(),
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});

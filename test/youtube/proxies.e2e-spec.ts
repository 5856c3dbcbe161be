import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { videoId } from '../fake-youtube/catalogue/model.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Adapter, context, end, openAdapter } from './adapter.js';

/** A proxy that tunnels (CONNECT) and counts; with `refuses` it responds with 429 in place of the platform. */
interface Proxy {
  url: string;
  tunnels: number;
  authorizations: Set<string | undefined>;
  close(): Promise<void>;
}

async function startProxy(target: string | null): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server: Server = createServer();
  const proxy: Proxy = {
    ...{ url: '', tunnels: 0, authorizations: new Set<string | undefined>() },
    close: async () => {
      const closed = once(server, 'close');
      for (const socket of sockets) socket.destroy();
      server.close();
      await closed;
    },
  };
  server.on('connection', (socket) => sockets.add(socket).size);
  server.on('connect', (request, client: Socket) => {
    proxy.tunnels += 1;
    proxy.authorizations.add(request.headers['proxy-authorization']);
    const [host = '', port = ''] = (target ?? request.url ?? '').split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.on('close', () => upstream.destroy());
    sockets.add(upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.url = `http://operator:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}

let fakeYoutube: FakeYoutube;
let refusing: FakeYoutube;
let proxies: Proxy[];
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
  refusing = await startFakeYoutube();
});

beforeEach(() => {
  fakeYoutube.reset();
  refusing.reset();
  refusing.setFaults({ kind: '429' });
  proxies = [];
});

afterEach(async () => {
  await adapter.close();
  await Promise.all(proxies.map((proxy) => proxy.close()));
});

afterAll(() => Promise.all([fakeYoutube.close(), refusing.close()]));

async function openThrough(...targets: (string | null)[]): Promise<void> {
  proxies = await Promise.all(targets.map(startProxy));
  adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_PROXY_URL: proxies.map(({ url }) => url) });
}

const read = (name: string) => adapter.platform.readVideo(videoId(name), [], context());
const refusingAddress = () => new URL(refusing.url).host;

describe('a pool of proxies', () => {
  it('every request is sent through a proxy, with the operator’s name and password', async () => {
    await openThrough(null);
    expect(end(await read('hl-island'))).toBe('ok');
    expect(proxies[0]?.tunnels).toBeGreaterThan(0);
    expect([...(proxies[0]?.authorizations ?? [])]).toEqual([
      `Basic ${Buffer.from('operator:p@ss').toString('base64')}`,
    ]);
  });

  it('a refused proxy is paused and another takes over, within the same call', async () => {
    await openThrough(refusingAddress(), null);
    expect(end(await read('hl-island'))).toBe('ok');
    expect(adapter.logged).toContainEqual(expect.objectContaining({ event: 'youtube_exit_rested', exit: 'proxy-1' }));
    const requested = refusing.requests.total;
    for (const name of ['hl-walk', 'hl-dinghy', 'hl-first']) expect(end(await read(name))).toBe('ok');
    expect(refusing.requests.total).toBe(requested);
  });

  it('channels are read through another proxy, too', async () => {
    await openThrough(refusingAddress(), null);
    await expect(
      adapter.platform.resolveChannel({ kind: 'handle', handle: 'harbourlight' }, context()),
    ).resolves.toMatch(/^UC/);
  });

  it('each egress has its own visitor data', async () => {
    await openThrough(null, null, null);
    const names = ['hl-island', 'hl-walk', 'hl-dinghy', 'hl-first', 'hl-keeper', 'hl-sharp'];
    expect((await Promise.all(names.map(read))).map(end)).toEqual(names.map(() => 'ok'));
    const visitors = new Set(
      fakeYoutube.requests.list.filter(({ kind }) => kind === 'player').map(({ visitorData }) => visitorData),
    );
    expect(visitors.size).toBe(3);
  });

  it('a refusal of all proxies is reported as a block, and no password is logged', async () => {
    await openThrough(refusingAddress(), refusingAddress());
    expect(end(await read('hl-island'))).toBe('upstream_blocked');
    expect(JSON.stringify(adapter.logged)).not.toMatch(/p@ss|p%40ss|operator/);
  });
});

describe('a proxy that is down', () => {
  it('is not used, and the requests are sent through another one', async () => {
    proxies = [await startProxy(null)];
    const urls = ['http://127.0.0.1:1', ...proxies.map(({ url }) => url)];
    adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_PROXY_URL: urls });
    expect(end(await read('hl-island'))).toBe('ok');
    await expect(adapter.platform.resolveChannel({ kind: 'handle', handle: 'tidewater' }, context())).resolves.toMatch(
      /^UC/,
    );
    expect(adapter.logged).toContainEqual(expect.objectContaining({ event: 'youtube_exit_rested', exit: 'proxy-1' }));
  });
});

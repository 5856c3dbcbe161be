import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Environment } from '../../src/config/environment.js';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import { videoId } from '../fake-youtube/catalogue/model.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { startGateway, type Gateway, type GatewayOptions } from '../fake-youtube/gateway.js';
import { type Adapter, context, end, openAdapter } from './adapter.js';

let fakeYoutube: FakeYoutube;
let refusing: FakeYoutube;
let proxies: Gateway[];
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
  refusing = await startFakeYoutube();
});

beforeEach(() => {
  fakeYoutube.reset();
  refusing.reset();
  refusing.setFaults({ kind: '429-retry-after', retryAfterSeconds: 30 });
  proxies = [];
});

afterEach(async () => {
  await adapter.close();
  await Promise.all(proxies.map((proxy) => proxy.close()));
});

afterAll(() => Promise.all([fakeYoutube.close(), refusing.close()]));

/** Opens the adapter with proxies that have one address each: `127.0.0.2`, `127.0.0.3`, … */
async function openThrough(...targets: (string | null)[]): Promise<void> {
  proxies = await Promise.all(
    targets.map((target, index) =>
      startGateway({ ...(target !== null && { target }), addressOf: () => `127.0.0.${index + 2}` }),
    ),
  );
  adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_PROXY_URL: proxies.map(urlOf), UPSTREAM_RETRIES: 2 });
}

const urlOf = ({ url }: Gateway) => url.replace(/operator.*:secret@/, 'operator:p%40ss@');

const read = (name: string) => adapter.platform.readVideo(videoId(name), [], context());
const refusingAddress = () => new URL(refusing.url).host;

describe('a pool of proxies', () => {
  it('every request is sent through a proxy, with the operator’s name and password', async () => {
    await openThrough(null);
    expect(end(await read('hl-island'))).toBe('ok');
    expect(fakeYoutube.requests.count({ egress: '127.0.0.2' })).toBe(fakeYoutube.requests.total);
    expect([...(proxies[0]?.credentials ?? [])]).toEqual(['operator:p@ss']);
  });

  it('a refused proxy is paused for its Retry-After, and another takes over at once, within the same call', async () => {
    await openThrough(refusingAddress(), null);
    expect(end(await read('hl-island'))).toBe('ok');
    const requested = refusing.requests.total;
    expect(adapter.logged).toContainEqual(
      expect.objectContaining({ event: 'youtube_block_opened', exit: 'proxy-1', openForSeconds: 30 }),
    );
    for (const name of ['hl-walk', 'hl-dinghy', 'hl-first']) expect(end(await read(name))).toBe('ok');
    expect(refusing.requests.total).toBe(requested);
  });

  it('a refusal of all proxies is reported as a block, and no password is logged', async () => {
    await openThrough(refusingAddress(), refusingAddress());
    expect(end(await read('hl-island'))).toBe('upstream_blocked');
    expect(JSON.stringify(adapter.logged)).not.toMatch(/p@ss|p%40ss|operator/);
  });
});

describe('a proxy that is down', () => {
  it('is not used, and the requests are sent through another one', async () => {
    proxies = [await startGateway()];
    const urls = ['http://127.0.0.1:1', ...proxies.map(urlOf)];
    adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_PROXY_URL: urls });
    expect(end(await read('hl-island'))).toBe('ok');
    await expect(adapter.platform.resolveChannel({ kind: 'handle', handle: 'tidewater' }, context())).resolves.toMatch(
      /^UC/,
    );
    expect(adapter.logged).toContainEqual(expect.objectContaining({ event: 'youtube_exit_rested', exit: 'proxy-1' }));
  });
});

describe('captions that are refused through one egress', () => {
  it('are read through another, and the refused one is not used until its pause ends', async () => {
    await openThrough(null, null);
    fakeYoutube.setFaults({ kind: '429', match: { kind: 'timedtext', egress: '127.0.0.2' } });
    for (const name of ['hl-island', 'hl-walk', 'hl-dinghy', 'hl-first']) expect(end(await read(name))).toBe('ok');
    expect(fakeYoutube.requests.count({ kind: 'timedtext', egress: '127.0.0.2' })).toBe(1);
    expect(adapter.logged).toContainEqual(
      expect.objectContaining({ event: 'youtube_block_opened', exit: 'proxy-1', openForSeconds: 30 }),
    );
  });
});

describe('a video that is not available in the country of one egress', () => {
  it('is what another one says, where it plays without captions, whichever is asked first', async () => {
    await openThrough(null, null);
    fakeYoutube.set({ countryOf: '127.0.0.3' });
    for (let times = 0; times < 8; times += 1) expect(end(await read('hl-abroad'))).toBe('transcript_unavailable');
    expect(adapter.logged.filter(({ event }) => event === 'youtube_block_opened')).toEqual([]);
  });

  it('is unavailable when it is in none of their countries, and certainly so', async () => {
    await openThrough(null, null);
    const outcome = await read('hl-abroad');
    expect(outcome).toMatchObject({
      failure: { code: 'video_unavailable', message: expect.stringMatching(/country/) },
    });
    expect(outcome).not.toHaveProperty('confirmed');
    const players = ({ kind }: { kind: string }) => kind === 'player' || kind === 'reel';
    expect(new Set(fakeYoutube.requests.list.filter(players).map(({ egress }) => egress)).size).toBe(2);
  });
});

describe('a rotating gateway', () => {
  const [GOOD, BAD] = ['127.20.0.1', '127.20.0.2'];
  const NAMES = ['hl-island', 'hl-walk', 'hl-dinghy', 'hl-first', 'hl-keeper', 'hl-sharp'];
  let gateway: Gateway;

  async function openGateway(options: GatewayOptions = {}, choices: Partial<Environment> = {}): Promise<void> {
    gateway = await startGateway(options);
    adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_PROXY_URL: [gateway.url], ...choices });
  }

  afterEach(() => gateway.close());

  it('gives each attempt an address, connections and visitor data of its own, the same for player and captions', async () => {
    await openGateway();
    for (const name of NAMES) expect(end(await read(name))).toBe('ok');
    expect(gateway.sessions.length).toBe(NAMES.length);
    const videos = fakeYoutube.requests.list.filter(({ kind }) => kind === 'player' || kind === 'timedtext');
    const addresses = new Map<string, Set<string>>();
    for (const { videoId: id, egress } of videos)
      addresses.set(String(id), (addresses.get(String(id)) ?? new Set()).add(egress));
    expect([...addresses.values()].every(({ size }) => size === 1)).toBe(true);
    expect(new Set(videos.map(({ egress }) => egress)).size).toBe(NAMES.length);
    const visitors = videos.filter(({ kind }) => kind === 'player').map(({ visitorData }) => visitorData);
    expect(new Set(visitors).size).toBe(NAMES.length);
    await fakeYoutube.requests.until((log) => log.sockets === 0);
  });

  it.each(['captcha', 'bot-check'] as const)(
    'serves nearly all videos although 60 %% of its addresses get a %s, without a pause',
    async (kind) => {
      let state = 7;
      const random = () => (state = (state * 1_103_515_245 + 12_345) & 0x7fffffff) / 0x7fffffff;
      await openGateway({ addressOf: () => (random() < 0.6 ? BAD : GOOD) });
      fakeYoutube.setFaults({ kind, match: { kind: ['player', 'reel'], egress: BAD } });
      const outcomes: string[] = [];
      for (let times = 0; times < 5; times += 1) for (const name of NAMES) outcomes.push(end(await read(name)));
      expect(outcomes.filter((outcome) => outcome === 'ok').length).toBeGreaterThanOrEqual(29);
      expect(outcomes.filter((outcome) => outcome !== 'ok' && outcome !== 'upstream_blocked')).toEqual([]);
      expect(adapter.logged.filter(({ event }) => event === 'youtube_block_opened')).toEqual([]);
      const labels = await adapter.registry.metrics();
      expect(labels).not.toMatch(new RegExp(gateway.sessions.join('|')));
    },
  );

  it('stops when all of its addresses are refused', async () => {
    await openGateway({ addressOf: () => BAD });
    fakeYoutube.setFaults({ kind: 'captcha', match: { kind: ['player', 'reel'] } });
    for (let times = 0; times < 5; times += 1)
      expect((await Promise.all(NAMES.map(read))).map(end)).toEqual(NAMES.map(() => 'upstream_blocked'));
    const requested = fakeYoutube.requests.total;
    const outcome = await read('hl-island');
    expect(end(outcome)).toBe('upstream_blocked');
    expect(outcome).toMatchObject({ failure: { retryAfterSeconds: expect.any(Number) } });
    expect(fakeYoutube.requests.total).toBe(requested);
  });

  it('asks the next session for the feed and the Shorts that one address is refused', async () => {
    // The list has the first session, and what describes it the next one.
    const addresses = [GOOD, BAD];
    await openGateway({ addressOf: () => addresses.shift() ?? GOOD });
    fakeYoutube.setFaults({ kind: '429', match: { kind: 'feed', egress: BAD } });
    const { platform } = adapter;
    const list = () =>
      platform.describe(HARBOUR_LIGHT.id, platform.uploads(HARBOUR_LIGHT.id, undefined, context()), context());
    expect((await list()).uploads.every(({ publishedAt }) => publishedAt === null)).toBe(true);
    expect((await list()).uploads.some(({ publishedAt }) => publishedAt !== null)).toBe(true);
  });

  it('finishes the player script that a call began to download and left', async () => {
    await openGateway({}, { PO_TOKEN_URL: fakeYoutube.url, YOUTUBE_CLIENTS: ['WEB'] });
    const script = fakeYoutube.hold({ kind: 'page' });
    const leaving = new AbortController();
    const id = videoId('hl-island');
    const left = adapter.platform.readVideo(id, [], context({ signal: leaving.signal }));
    await script.arrived;
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    // Its session would close now.
    await new Promise((resolve) => setImmediate(resolve));
    script.release();
    expect(end(await read('hl-island'))).toBe('ok');
    expect(fakeYoutube.requests.count({ kind: 'page' })).toBe(2);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { request, postInnertube, type Reply, valueAt } from '../requests.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube.js';
import type { FaultKind } from './fault-registry.js';

let fakeYoutube: FakeYoutube;
beforeAll(async () => {
  fakeYoutube = await startFakeYoutube({ seed: 7 });
});
beforeEach(() => fakeYoutube.reset());
afterAll(() => fakeYoutube.close());

const player = (videoId = 'tw-bread___'): Promise<Reply> =>
  postInnertube(fakeYoutube.url, 'player', { videoId }, 'VISIONOS');
const feedUrl = (): string => `${fakeYoutube.url}/feeds/videos.xml?channel_id=UCtidewater_____________`;

describe('a fault', () => {
  it.each<[FaultKind, object]>([
    ['429', { status: 429 }],
    ['500', { status: 500 }],
    ['empty', { status: 200, text: '' }],
    ['captcha', { status: 200, text: expect.stringContaining('class="g-recaptcha"') }],
    ['consent', { status: 200, text: expect.stringContaining('action="https://consent.youtube.com/s"') }],
    ['truncated', { status: 200, json: null, text: expect.stringMatching(/^\{"responseContext/) }],
    ['wrong-charset', { status: 200, json: null, text: expect.stringContaining('\0') }],
    ['not-json', { status: 200, json: null }],
    ['redirect', { status: 302 }],
  ])('sends the response named by its kind: %s', async (kind, reply) => {
    fakeYoutube.setFaults({ kind });
    expect(await player()).toMatchObject(reply);
    expect(fakeYoutube.requests.list[0]?.fault).toBe(kind);
  });

  it('sends Retry-After with a 429 and Location with a redirect', async () => {
    fakeYoutube.setFaults(
      { kind: '429-retry-after', retryAfterSeconds: 3, times: 1 },
      { kind: 'redirect', location: '/x', times: 1 },
    );
    expect((await player()).headers.get('retry-after')).toBe('3');
    expect((await player()).headers.get('location')).toBe('/x');
  });

  it.each<FaultKind>(['reset', 'cut', 'half-closed'])('breaks the connection: %s', async (kind) => {
    fakeYoutube.setFaults({ kind });
    await expect(player()).rejects.toThrow();
    await fakeYoutube.requests.until(({ inFlight }) => inFlight === 0);
    expect(fakeYoutube.requests.aborted).toBe(0);
  });

  it('sends the bot check for player requests only', async () => {
    fakeYoutube.setFaults({ kind: 'bot-check' });
    const { json } = await player();
    expect(valueAt(json, 'playabilityStatus.reason')).toBe('Sign in to confirm you’re not a bot');
    expect(json).not.toHaveProperty('videoDetails');
    expect((await request(feedUrl())).text).toContain('<feed');
  });

  it('sends hostile captions in the requested format, for caption requests only', async () => {
    fakeYoutube.setFaults({ kind: 'hostile-captions' });
    const [, url] = /"baseUrl":"[^"]*(\/api\/timedtext[^"]*?)(?:\\u0026fmt=|&fmt=|")/.exec((await player()).text) ?? [];
    const [legacy, json3] = await Promise.all(
      ['', '&fmt=json3'].map((format) => request(`${fakeYoutube.url}${url}${format}`)),
    );
    expect(legacy?.text).toMatch(/^<transcript><text start="0" dur="1">&lt;i a= {50000}<\/text>.*<\/transcript>$/s);
    expect(valueAt(json3?.json, 'events.0.segs.0.utf8')).toMatch(/^<i a= +$/);
  });

  it.each<FaultKind>(['hang', 'slow-drip', 'huge'])('never ends the response: %s', async (kind) => {
    fakeYoutube.setFaults({ kind });
    const caller = new AbortController();
    const given = request(feedUrl(), { signal: caller.signal });
    await fakeYoutube.requests.until(({ total }) => total === 1);
    caller.abort();
    await expect(given).rejects.toThrow();
    await fakeYoutube.requests.until(({ aborted }) => aborted === 1);
  });

  it('sends a body larger than any client should read: huge', async () => {
    fakeYoutube.setFaults({ kind: 'huge' });
    const caller = new AbortController();
    const response = await fetch(feedUrl(), { signal: caller.signal });
    let bytes = 0;
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > 20_000_000) break;
    }
    caller.abort();
    expect(bytes).toBeGreaterThan(20_000_000);
  });

  it('applies only to matching requests, at most the configured number of times', async () => {
    fakeYoutube.setFaults({
      kind: '500',
      match: { kind: 'player', client: 'VISIONOS', videoId: 'tw-bread___' },
      times: 2,
    });
    const statuses = [];
    for (const videoId of ['tw-tea_____', 'tw-bread___', 'tw-bread___', 'tw-bread___'])
      statuses.push((await player(videoId)).status);
    expect(statuses).toEqual([200, 500, 500, 200]);
  });

  it('applies to the share of requests given by its rate, and to the same ones for a seed', async () => {
    const hits = async (): Promise<number[]> => {
      fakeYoutube.setFaults({ kind: '429', match: { path: /^\/feeds/ }, rate: 0.3 });
      const hit = [];
      for (let index = 0; index < 200; index += 1) if ((await request(feedUrl())).status === 429) hit.push(index);
      return hit;
    };
    const first = await hits();
    expect(first.length).toBeGreaterThan(40);
    expect(first.length).toBeLessThan(80);
    expect(await hits()).toEqual(first);
  });

  it('sends requests without a cookie to the consent page', async () => {
    fakeYoutube.set({ consentRequired: true });
    expect((await request(feedUrl())).text).toContain('consent.youtube.com');
    expect((await request(feedUrl(), { headers: { Cookie: 'SOCS=CAE=' } })).text).toContain('<feed');
  });
});

describe('a hold', () => {
  it('holds requests in flight until it is released', async () => {
    const hold = fakeYoutube.hold({ kind: 'player' }, 2);
    let responses = 0;
    const both = ['tw-bread___', 'tw-tea_____'].map(async (videoId) => {
      await player(videoId);
      responses += 1;
    });
    await hold.arrived;
    expect((await request(feedUrl())).status).toBe(200);
    expect(responses).toBe(0);
    expect(fakeYoutube.requests.inFlight).toBe(2);
    hold.release();
    await Promise.all(both);
    expect(fakeYoutube.requests.inFlightMax).toBe(3);
  });

  it('exposes that the client aborted its request', async () => {
    const hold = fakeYoutube.hold({ kind: 'feed' });
    const caller = new AbortController();
    const given = request(feedUrl(), { signal: caller.signal });
    await hold.arrived;
    caller.abort();
    await expect(given).rejects.toThrow();
    await fakeYoutube.requests.until(({ aborted, inFlight }) => aborted === 1 && inFlight === 0);
    expect(fakeYoutube.requests.list[0]).toMatchObject({ kind: 'feed', status: null, aborted: true });
  });

  it('consumes no fault for an aborted request', async () => {
    fakeYoutube.setFaults({ kind: '500', times: 1 });
    const hold = fakeYoutube.hold({});
    const caller = new AbortController();
    const given = request(feedUrl(), { signal: caller.signal });
    await hold.arrived;
    caller.abort();
    await expect(given).rejects.toThrow();
    await fakeYoutube.requests.until(({ aborted }) => aborted === 1);
    hold.release();
    expect((await player()).status).toBe(500);
  });

  it('ends with a reset', async () => {
    const hold = fakeYoutube.hold({});
    const given = player();
    await hold.arrived;
    fakeYoutube.reset();
    expect((await given).status).toBe(200);
  });
});

describe('the controls over HTTP', () => {
  const change = (body: string): Promise<Reply> =>
    request(`${fakeYoutube.url}/fake-youtube/faults`, { method: 'POST', body });

  it('set faults and settings, count requests, and reset', async () => {
    await change('{"faults":[{"kind":"500","match":{"kind":["player"],"client":"VISIONOS"}}],"playlistShape":"old"}');
    expect((await player()).status).toBe(500);
    const { json } = await request(`${fakeYoutube.url}/fake-youtube/requests`);
    expect(json).toMatchObject({ total: 1, kind: { player: 1 }, client: { VISIONOS: 1 } });
    expect(valueAt(json, 'videoId')).toEqual({ 'tw-bread___': 1 });
    await request(`${fakeYoutube.url}/fake-youtube/reset`, { method: 'POST' });
    expect((await player()).status).toBe(200);
  });

  it.each([
    '',
    '[]',
    '{"fault":[]}',
    '{"faults":{}}',
    '{"faults":[{"kind":"rain"}]}',
    '{"faults":[{"kind":"500","match":{"path":"("}}]}',
  ])('reject %j with the reason', async (body) => {
    const { status, json } = await change(body);
    expect(status).toBe(400);
    expect(valueAt(json, 'error')).toEqual(expect.stringMatching(/^[^\n]{10,}$/));
  });
});

describe('the fake YouTube', () => {
  it('delays every response by the latency', async () => {
    fakeYoutube.set({ latencyMs: 200 });
    const order: string[] = [];
    const delayed = player().then(() => order.push('delayed'));
    await fakeYoutube.requests.until((log) => log.count({ kind: 'player' }) === 1);
    fakeYoutube.set({ latencyMs: 0 });
    await player();
    order.push('not delayed');
    await delayed;
    expect(order).toEqual(['not delayed', 'delayed']);
  });

  it('compresses responses for clients that accept gzip', async () => {
    const list = { browseId: 'VLUUfogsignalradio________' };
    expect((await postInnertube(fakeYoutube.url, 'browse', list)).headers.get('content-encoding')).toBe('gzip');
    const plain = await request(feedUrl(), { headers: { 'Accept-Encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).toBeNull();
  });

  it('closes immediately, even with hanging requests', async () => {
    const own = await startFakeYoutube({ faults: [{ kind: 'hang' }] });
    const given = request(`${own.url}/feeds/videos.xml`);
    await own.requests.until(({ total }) => total === 1);
    const [hung] = await Promise.allSettled([given, own.close()]);
    expect(hung.status).toBe('rejected');
  });

  it('rejects a port in use', async () => {
    await expect(startFakeYoutube({ port: Number(new URL(fakeYoutube.url).port) })).rejects.toThrow('EADDRINUSE');
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { videoId } from '../fake-youtube/catalogue/model.js';
import { FOG_SIGNAL } from '../fake-youtube/catalogue/other-channels.js';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Adapter, context, end, listUploads, openAdapter } from './adapter.js';

let fakeYoutube: FakeYoutube;
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});

beforeEach(async () => {
  fakeYoutube.reset();
  adapter = await openAdapter(fakeYoutube.url);
});

afterEach(async () => {
  await adapter.close();
  await fakeYoutube.requests.until((log) => log.sockets === 0 && log.inFlight === 0);
});

afterAll(() => fakeYoutube.close());

const ISLAND = videoId('hl-island');
const FIVE = ['hl-dinghy', 'hl-keeper', 'hl-walk', 'hl-bowline', 'hl-first'];
const readNamed = (name: string) => adapter.platform.readVideo(videoId(name), [], context());
const read = (reading = context()) => adapter.platform.readVideo(ISLAND, [], reading);

/** The clock of pauses and deadlines, put forward. */
function advancing() {
  const real = performance.now.bind(performance);
  let aheadMs = 0;
  const spy = jest.spyOn(performance, 'now').mockImplementation(() => real() + aheadMs);
  return { advance: (seconds: number) => void (aheadMs += seconds * 1_000), restore: () => spy.mockRestore() };
}

async function reopen(choices: Parameters<typeof openAdapter>[1]): Promise<void> {
  await adapter.close();
  adapter = await openAdapter(fakeYoutube.url, choices);
}

describe('refusals that look like other responses', () => {
  it('a captcha in place of the player is a refusal at any status', async () => {
    for (const playability of ['OK', 'ERROR', 'UNPLAYABLE', 'LOGIN_REQUIRED']) {
      fakeYoutube.setFaults({ kind: 'player-captcha', playability });
      expect(end(await read())).toBe('upstream_blocked');
    }
  });

  it.each(['sorry-200', 'sorry-403', 'sorry-503'] as const)(
    '%s of a caption response is reported as a block, and is not retried',
    async (kind) => {
      await reopen({ UPSTREAM_RETRIES: 2 });
      fakeYoutube.setFaults({ kind, match: { kind: 'timedtext' } });
      expect(end(await read())).toBe('upstream_blocked');
      expect(fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(1);
    },
  );
});

describe('retired client versions', () => {
  const RETIRED = ['retired', 'retired-reason', 'retired-subreason', 'retired-screen'] as const;
  const retired = () => adapter.logged.filter(({ event }) => event === 'youtube_client_retired');

  it.each(RETIRED)('%s: the client comes last after three videos, and the next one is used', async (kind) => {
    fakeYoutube.setFaults({ kind, match: { client: 'ANDROID' } });
    for (const name of FIVE) expect(end(await readNamed(name))).toBe('ok');
    // A rejected request is sent once more without its mask, for the first video only.
    expect(fakeYoutube.requests.count({ kind: 'player', client: 'ANDROID' })).toBe(kind === 'retired' ? 4 : 3);
    expect(retired()).toEqual([{ event: 'youtube_client_retired', client: 'ANDROID' }]);
  });

  it.each(RETIRED)('%s of all clients is never reported as an unavailable video', async (kind) => {
    fakeYoutube.setFaults({ kind });
    for (const name of [...FIVE, 'hl-deleted', 'hl-silent'])
      expect(end(await readNamed(name))).toBe('upstream_failure');
    fakeYoutube.requests.clear();
    const outcome = await read();
    expect(outcome.ok ? '' : outcome.failure.message).toContain('no longer serves the client versions');
    expect(fakeYoutube.requests.total).toBe(1);
    expect(end(await readNamed('hl-deleted'))).toBe('upstream_failure');
    expect(retired()).toHaveLength(5);
    // A video that the one client asked reports as unavailable is not mistaken for it, and neither is a block.
    fakeYoutube.setFaults();
    expect(end(await readNamed('hl-deleted'))).toBe('upstream_failure');
    fakeYoutube.setFaults({ kind: 'bot-check' });
    expect(end(await read())).toBe('upstream_blocked');
  });

  it('an override of the version makes the client work again', async () => {
    fakeYoutube.setFaults({ kind: 'retired', match: { clientVersion: '21.26.364' } });
    await reopen({ YOUTUBE_CLIENT_OVERRIDES: { ANDROID: { clientVersion: '21.99.1' } } });
    expect(end(await read())).toBe('ok');
    expect(new Set(fakeYoutube.requests.list.map(({ client }) => client))).toEqual(new Set(['ANDROID']));
  });
});

describe('timeouts and deadlines', () => {
  it('no other client is tried after the deadline', async () => {
    fakeYoutube.setFaults({ kind: '500', match: { kind: ['player', 'reel'] } });
    expect(end(await read(context({ deadlineAtMs: performance.now() - 1 })))).toBe('upstream_timeout');
    expect(fakeYoutube.requests.count({ kind: 'player' })).toBe(0);
  });
});

describe('an abort by the caller', () => {
  it.each(['player', 'timedtext'] as const)('stops the %s request, and rejects with the reason', async (kind) => {
    const leaving = new AbortController();
    const hold = fakeYoutube.hold({ kind });
    const reading = read(context({ signal: leaving.signal }));
    await Promise.all([
      expect(reading).rejects.toThrow('left'),
      hold.arrived.then(() => leaving.abort(new Error('left'))),
    ]);
    await fakeYoutube.requests.until((log) => log.aborted === 1 && log.inFlight === 0);
    const before = fakeYoutube.requests.total;
    hold.release();
    await new Promise(setImmediate);
    expect(fakeYoutube.requests.total).toBe(before);
  });

  it('stops the list, the Shorts and the feed together', async () => {
    const leaving = new AbortController();
    const hold = fakeYoutube.hold({ kind: ['browse', 'feed'] }, 3);
    const listing = listUploads(adapter.platform, HARBOUR_LIGHT.id, 25, context({ signal: leaving.signal }));
    await Promise.all([
      expect(listing).rejects.toThrow('left'),
      hold.arrived.then(() => leaving.abort(new Error('left'))),
    ]);
    await fakeYoutube.requests.until((log) => log.aborted === 3 && log.inFlight === 0);
  });

  it('before the start sends no request', async () => {
    const signal = AbortSignal.abort(new Error('left'));
    await expect(read(context({ signal }))).rejects.toThrow('left');
    await expect(listUploads(adapter.platform, HARBOUR_LIGHT.id, 1, context({ signal }))).rejects.toThrow('left');
    await expect(adapter.platform.readChannel(HARBOUR_LIGHT.id, context({ signal }))).rejects.toThrow('left');
    expect(fakeYoutube.requests.total).toBe(0);
  });

  it('closing the adapter ends running requests with a failure', async () => {
    const hold = fakeYoutube.hold({ kind: 'player' });
    const reading = read();
    await hold.arrived;
    await adapter.close();
    expect(end(await reading)).toMatch(/^upstream_/);
  });
});

describe('concurrency limit and pauses', () => {
  it('concurrent requests and connections stay within UPSTREAM_CONCURRENCY', async () => {
    await reopen({ UPSTREAM_CONCURRENCY: 4 });
    fakeYoutube.set({ latencyMs: 5 });
    const calls = [context(), context()];
    const videos = HARBOUR_LIGHT.uploads().slice(0, 20);
    await Promise.all(calls.flatMap((call) => videos.map(({ id }) => adapter.platform.readVideo(id, [], call))));
    expect(fakeYoutube.requests.inFlightMax).toBeLessThanOrEqual(4);
    expect(fakeYoutube.requests.socketsMax).toBeLessThanOrEqual(4);
  });

  it('refused videos stop all video requests, and channels can still be read', async () => {
    fakeYoutube.setFaults({ kind: 'bot-check' });
    for (const name of FIVE) expect(end(await readNamed(name))).toBe('upstream_blocked');
    const before = fakeYoutube.requests.total;
    expect(end(await read())).toBe('upstream_blocked');
    expect(fakeYoutube.requests.total).toBe(before);
    expect(adapter.logged).toContainEqual(expect.objectContaining({ event: 'youtube_block_opened', use: 'video' }));
    await expect(adapter.platform.readChannel(HARBOUR_LIGHT.id, context())).resolves.toMatchObject({
      handle: '@harbourlight',
    });
  });

  it('refused lists stop all list requests, and videos can still be read', async () => {
    fakeYoutube.setFaults({ kind: '429', match: { kind: ['browse', 'feed', 'resolve'] } });
    const list = () => listUploads(adapter.platform, HARBOUR_LIGHT.id, 1);
    await expect(list()).rejects.toMatchObject({ code: 'upstream_blocked' });
    const before = fakeYoutube.requests.total;
    await expect(list()).rejects.toMatchObject({ code: 'upstream_blocked', retryAfterSeconds: 30 });
    expect(fakeYoutube.requests.total).toBe(before);
    expect(adapter.logged).toContainEqual(expect.objectContaining({ event: 'youtube_block_opened', use: 'channel' }));
    expect(end(await read())).toBe('ok');
  });

  it('the first call against an unknown budget is refused what runs at once: two clients a video, and two controls', async () => {
    const slots = 16;
    await reopen({ UPSTREAM_CONCURRENCY: slots });
    const player = { burst: 40, perMinute: 120, blockSeconds: 30 };
    const timedtext = { burst: 1_000, perMinute: 1_000, blockSeconds: 30 };
    fakeYoutube.set({
      latencyMs: 20,
      budgets: { player, timedtext, list: null, penaltySeconds: 5, blockSecondsMax: 3_600, badShare: 0 },
    });
    const call = context();
    const videos = FOG_SIGNAL.uploads().slice(0, 100);
    const outcomes = await Promise.all(videos.map(({ id }) => adapter.platform.readVideo(id, [], call)));
    expect(new Set(outcomes.map(end))).toEqual(new Set(['ok', 'upstream_blocked']));
    const served = outcomes.filter(({ ok }) => ok).length;
    expect(served).toBeGreaterThanOrEqual(40);
    expect(fakeYoutube.requests.count({ kind: ['player', 'reel'] }) - served).toBeLessThanOrEqual(2 * slots + 2);
  });

  it('a pause ends with a control that is served, and each refused one costs a single request', async () => {
    fakeYoutube.setFaults({ kind: 'bot-check' });
    for (const name of FIVE) await readNamed(name);
    const probe = async () => {
      fakeYoutube.requests.clear();
      const outcomes = await Promise.all(FIVE.map(readNamed));
      return [outcomes.filter(({ ok }) => ok).length, fakeYoutube.requests.count({ kind: ['player', 'reel'] })];
    };
    const clock = advancing();
    try {
      clock.advance(31);
      expect(await probe()).toEqual([0, 1]);
      expect(await probe()).toEqual([0, 0]);
      fakeYoutube.setFaults();
      clock.advance(61);
      expect(await probe()).toEqual([5, 6]);
      expect(adapter.logged).toContainEqual(expect.objectContaining({ event: 'youtube_block_closed' }));
    } finally {
      clock.restore();
    }
  });

  it('videos whose text needs a token do not pause the egress for the others', async () => {
    for (let times = 0; times < 3; times += 1) {
      for (const name of ['hl-token', 'hl-void', 'hl-mixed']) {
        expect(end(await adapter.platform.readVideo(videoId(name), [], context()))).toBe('upstream_blocked');
      }
    }
    expect(end(await read())).toBe('ok');
  });
});

describe('visitor data', () => {
  const players = () => fakeYoutube.requests.list.filter(({ kind }) => kind === 'player');

  it('is requested without sending any, and is accepted where the platform requires its own', async () => {
    fakeYoutube.set({ visitorDataRequired: true });
    expect(end(await read())).toBe('ok');
    const [asked] = fakeYoutube.requests.list.filter(({ kind }) => kind === 'visitor');
    expect(asked).toMatchObject({ visitorData: null });
    expect(Object.keys(asked?.headers ?? {})).not.toContain('x-goog-visitor-id');
    expect(players().map(({ client }) => client)).toEqual(['ANDROID']);
  });

  it('of a bot check is adopted, and the same client is asked once more', async () => {
    fakeYoutube.setFaults({ kind: 'bot-check-renewed' });
    expect(end(await read())).toBe('ok');
    expect(players().map(({ client }) => client)).toEqual(['ANDROID', 'ANDROID']);
    fakeYoutube.requests.clear();
    expect(end(await readNamed('hl-dinghy'))).toBe('ok');
    expect(players()).toHaveLength(1);
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { VideoOutcome } from '../../src/domain/transcript.js';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import { videoId } from '../fake-youtube/catalogue/model.js';
import { FOG_SIGNAL, TIDEWATER } from '../fake-youtube/catalogue/other-channels.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { startGateway, type Gateway } from '../fake-youtube/gateway.js';
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
afterEach(() => adapter.close());
afterAll(() => fakeYoutube.close());

async function reopen(choices: Parameters<typeof openAdapter>[1]): Promise<void> {
  await adapter.close();
  adapter = await openAdapter(fakeYoutube.url, choices);
}

const PLAYERS = { kind: ['player', 'reel'] } as const;
const VIDEOS = FOG_SIGNAL.uploads().map(({ id }) => id);
const [ODD = '', OTHER_ODD = ''] = TIDEWATER.uploads().map(({ id }) => id);
const read = (id: string, reading = context()) => adapter.platform.readVideo(id, [], reading);
const readAll = (ids: readonly string[], reading = context()) => Promise.all(ids.map((id) => read(id, reading)));
const ends = (outcomes: readonly VideoOutcome[]) => [...new Set(outcomes.map(end))];
const events = (name: string) => adapter.logged.filter(({ event }) => event === name);
const list = (channelId: string) => listUploads(adapter.platform, channelId, 25);

/** The clock of pauses and memories, put forward. */
async function later<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  const real = performance.now.bind(performance);
  const spy = jest.spyOn(performance, 'now').mockImplementation(() => real() + seconds * 1_000);
  return work().finally(() => spy.mockRestore());
}

describe('a video that every client refuses', () => {
  beforeEach(() =>
    fakeYoutube.setFaults(
      { kind: 'bot-check', match: { videoId: ODD } },
      { kind: 'bot-check', match: { videoId: OTHER_ODD } },
    ),
  );

  it('is refused by itself, also beside another one: every other video is served', async () => {
    for (let times = 0; times < 3; times += 1) {
      const [odd, others] = await Promise.all([
        readAll([ODD, OTHER_ODD]),
        readAll(VIDEOS.slice(times * 20, times * 20 + 20)),
      ]);
      expect(ends(odd)).toEqual(['upstream_blocked']);
      expect(ends(others)).toEqual(['ok']);
    }
    expect(events('youtube_block_opened')).toEqual([]);
    expect(events('youtube_client_rested')).toEqual([]);
  });

  it('and no other one is asked for costs two clients and a control, and leaves the address open', async () => {
    expect(ends(await readAll([ODD, OTHER_ODD]))).toEqual(['upstream_blocked']);
    expect(end(await read(VIDEOS[0] ?? ''))).toBe('ok');
    expect(events('youtube_block_opened')).toEqual([]);
    expect(events('youtube_control_asked')).toContainEqual(expect.objectContaining({ finding: 'served' }));
    expect(events('youtube_video_refused').map(({ videoId: id }) => id)).toEqual(
      expect.arrayContaining([ODD, OTHER_ODD]),
    );
  });

  it('is remembered for ten minutes, and asked for again after that', async () => {
    await read(ODD);
    fakeYoutube.setFaults();
    fakeYoutube.requests.clear();
    expect(end(await read(ODD))).toBe('upstream_blocked');
    expect(fakeYoutube.requests.total).toBe(0);
    expect(await later(601, async () => end(await read(ODD)))).toBe('ok');
  });
});

describe('a video that the network restricts', () => {
  it('is blocked and not remembered while every other one is served', async () => {
    fakeYoutube.setFaults({ kind: 'network-restricted', match: { videoId: ODD } });
    for (let times = 0; times < 2; times += 1) {
      const outcomes = await readAll([ODD, ...VIDEOS.slice(times * 20, times * 20 + 20)]);
      expect(outcomes.map(end)).toEqual(['upstream_blocked', ...Array<string>(20).fill('ok')]);
    }
    expect(events('youtube_block_opened')).toEqual([]);
    expect(events('youtube_video_refused')).toHaveLength(2);
    fakeYoutube.setFaults();
    expect(end(await read(ODD))).toBe('ok');
  });
});

describe.each(['content-unavailable', 'network-restricted', 'bot-check', 'reload-screen', 'forbidden'] as const)(
  'an address that is refused with %s',
  (kind) => {
    it('is found out with few requests, and nothing is reported as a fact about a video', async () => {
      expect(ends(await readAll(VIDEOS.slice(0, 16)))).toEqual(['ok']);
      fakeYoutube.setFaults({ kind, match: { kind: ['player', 'reel'] } });
      fakeYoutube.requests.clear();
      const outcomes = await readAll(VIDEOS.slice(20, 120));
      expect(ends(outcomes)).toEqual(['upstream_blocked']);
      expect(outcomes.every((outcome) => !outcome.ok && outcome.failure.retryAfterSeconds !== undefined)).toBe(true);
      // Those in flight, and about four.
      expect(fakeYoutube.requests.count(PLAYERS)).toBeLessThanOrEqual(24);
      expect(events('youtube_block_opened')).toHaveLength(1);
      fakeYoutube.requests.clear();
      expect(ends(await readAll(VIDEOS.slice(120, 140)))).toEqual(['upstream_blocked']);
      expect(fakeYoutube.requests.total).toBe(0);
    });

    it('costs one caller about four requests, and serves again when a control is served', async () => {
      fakeYoutube.setFaults({ kind, match: { kind: ['player', 'reel'] } });
      const [first = '', second = ''] = VIDEOS;
      expect(end(await read(first))).toBe('upstream_blocked');
      expect(fakeYoutube.requests.count(PLAYERS)).toBeLessThanOrEqual(5);
      fakeYoutube.setFaults();
      fakeYoutube.requests.clear();
      await later(31, async () => {
        expect(end(await read(second))).toBe('ok');
        expect(end(await read(first))).toBe('ok');
      });
      // A control, and the two videos.
      expect(fakeYoutube.requests.count(PLAYERS)).toBe(3);
      expect(events('youtube_block_closed')).toHaveLength(1);
    });
  },
);

describe('an address that is refused in light use', () => {
  it.each([
    ['a call of 20', 20],
    ['a call of 60', 60],
  ])('serves %s as soon as it is served again', async (_, count) => {
    let seconds = 0;
    for (let round = 0; round < 12; round += 1) {
      expect(ends(await later(seconds, () => readAll(VIDEOS.slice(2 * round, 2 * round + 2))))).toEqual(['ok']);
      seconds += 2.5;
    }
    fakeYoutube.setFaults({ kind: '429', match: { kind: 'player' } });
    expect(end(await later(seconds, () => read(VIDEOS[30] ?? '')))).toBe('upstream_blocked');
    fakeYoutube.setFaults();
    await later(seconds + 31, async () => {
      expect(end(await read(VIDEOS[31] ?? ''))).toBe('ok');
      const reading = context({ deadlineAtMs: performance.now() + 30_000 });
      expect(ends(await readAll(VIDEOS.slice(40, 40 + count), reading))).toEqual(['ok']);
    });
  });
});

describe('a client that is refused', () => {
  it.each(['player', 'timedtext'] as const)('for its %s with 403 does not stop the others, and rests', async (kind) => {
    fakeYoutube.setFaults({ kind: 'forbidden', match: { kind, client: 'ANDROID' } });
    expect(ends(await readAll(VIDEOS.slice(0, 12)))).toEqual(['ok']);
    expect(events('youtube_client_rested')).toEqual([expect.objectContaining({ client: 'ANDROID' })]);
    expect(events('youtube_block_opened')).toEqual([]);
    fakeYoutube.requests.clear();
    expect(ends(await readAll(VIDEOS.slice(12, 24)))).toEqual(['ok']);
    expect(fakeYoutube.requests.count({ client: 'ANDROID' })).toBe(0);
  });

  it.each(['500', 'hang'] as const)('with %s is not asked any more when others are served', async (kind) => {
    await reopen({ UPSTREAM_TIMEOUT_SECONDS: 5 });
    fakeYoutube.setFaults({ kind, match: { kind: 'player', client: 'ANDROID' } });
    expect(ends(await readAll(VIDEOS.slice(0, 12)))).toEqual(['ok']);
    fakeYoutube.requests.clear();
    expect(ends(await readAll(VIDEOS.slice(12, 24)))).toEqual(['ok']);
    expect(fakeYoutube.requests.count({ client: 'ANDROID' })).toBe(0);
  });

  it('with all but one app pauses the address once, and rests from then on', async () => {
    const refused = ['ANDROID', 'ANDROID_REEL', 'IOS'] as const;
    fakeYoutube.setFaults(...refused.map((client) => ({ kind: 'content-unavailable', match: { client } }) as const));
    expect(ends(await readAll(VIDEOS.slice(0, 12)))).toEqual(['upstream_blocked']);
    await later(31, async () => {
      // They began before the pause ended.
      expect(ends(await readAll(VIDEOS.slice(12, 24)))).toEqual(['ok']);
      fakeYoutube.requests.clear();
      expect(ends(await readAll(VIDEOS.slice(0, 12)))).toEqual(['ok']);
    });
    for (const client of refused) expect(fakeYoutube.requests.count({ client })).toBe(0);
    expect(events('youtube_block_opened')).toHaveLength(1);
  });

  it('together with another one is told from a refused address by a third', async () => {
    fakeYoutube.setFaults(
      ...(['ANDROID', 'IOS'] as const).map(
        (client) => ({ kind: 'forbidden', match: { kind: 'player', client } }) as const,
      ),
    );
    expect(ends(await readAll(VIDEOS.slice(0, 12)))).toEqual(['ok']);
    expect(events('youtube_block_opened')).toEqual([]);
  });
});

describe('facts', () => {
  it('an unavailable video is reported when its address was served after it, which costs three clients in normal work', async () => {
    const { platform } = adapter;
    await readAll(VIDEOS.slice(0, 4));
    // The first word of the reel in this hour is checked.
    expect(end(await read(videoId('hl-deleted')))).toBe('video_unavailable');
    fakeYoutube.requests.clear();
    const outcomes = await Promise.all(
      [videoId('hl-deleted'), ...VIDEOS.slice(4, 40)].map((id) => platform.readVideo(id, [], context())),
    );
    expect(outcomes.map(end).slice(0, 2)).toEqual(['video_unavailable', 'ok']);
    expect(fakeYoutube.requests.count(PLAYERS)).toBe(36 + 3);
  });

  it.each(['hl-private', 'hl-silent', 'hl-rum', 'hl-members'])(
    '%s is stated by a client that was served within the last minute, or else passes its control',
    async (name) => {
      const id = videoId(name);
      if (!HARBOUR_LIGHT.uploads().some((upload) => upload.id === id)) return;
      const outcome = await read(id);
      expect(end(outcome)).not.toMatch(/^(upstream_|ok)/);
      // Only "no captions" needs the word of a second app.
      const clients = name === 'hl-silent' ? 2 : 1;
      expect(fakeYoutube.requests.count(PLAYERS)).toBe(clients + 1);
      fakeYoutube.requests.clear();
      await read(id);
      expect(fakeYoutube.requests.count(PLAYERS)).toBe(clients);
    },
  );
});

describe('a video whose text is refused to every client', () => {
  it('is refused by itself, also when only videos were read whose texts need tokens', async () => {
    const names = ['hl-void', 'hl-token', 'hl-mixed', 'hl-silent'];
    const outcomes = await readAll(names.map(videoId));
    expect(outcomes.map(end)).toEqual([...Array<string>(3).fill('upstream_blocked'), 'transcript_unavailable']);
    expect(events('youtube_block_opened')).toEqual([]);
  });
});

describe('optional requests', () => {
  it.each(['429', 'consent', 'captcha'] as const)('%s of the feed changes no list of any channel', async (kind) => {
    fakeYoutube.setFaults({ kind, match: { kind: 'feed' } });
    for (const { id } of [HARBOUR_LIGHT, TIDEWATER, FOG_SIGNAL]) {
      const { uploads } = await list(id);
      expect(uploads.length).toBeGreaterThan(0);
    }
    expect(events('youtube_block_opened')).toEqual([]);
    // It is not asked for again for a minute.
    expect(fakeYoutube.requests.count({ kind: 'feed' })).toBe(1);
  });
});

describe('a list that is refused', () => {
  it('with 403 is not served, and the lists of other channels are', async () => {
    fakeYoutube.setFaults({ kind: 'forbidden', match: { kind: 'browse', channelId: TIDEWATER.id } });
    await expect(list(TIDEWATER.id)).rejects.toMatchObject({ code: 'upstream_blocked' });
    expect((await list(HARBOUR_LIGHT.id)).uploads).not.toEqual([]);
    expect(events('youtube_block_opened')).toEqual([]);
  });

  it('with 403 for every channel pauses lists, until a channel that exists is served', async () => {
    fakeYoutube.setFaults({ kind: 'forbidden', match: { kind: 'browse' } });
    await expect(list(TIDEWATER.id)).rejects.toMatchObject({ code: 'upstream_blocked' });
    expect(events('youtube_block_opened')).toEqual([expect.objectContaining({ use: 'channel', kind: 'list' })]);
    fakeYoutube.setFaults();
    expect((await later(31, () => list(TIDEWATER.id))).uploads).not.toEqual([]);
  });
});

describe('one of several proxies', () => {
  let proxies: Gateway[];

  beforeEach(async () => {
    proxies = await Promise.all([2, 3, 4].map((last) => startGateway({ addressOf: () => `127.0.0.${last}` })));
    const UPSTREAM_PROXY_URL = proxies.map(({ url }) => url.replace(/-session-\{session\}/, ''));
    await reopen({ UPSTREAM_PROXY_URL, UPSTREAM_TIMEOUT_SECONDS: 4, UPSTREAM_RETRIES: 2 });
  });
  afterEach(() => Promise.all(proxies.map((proxy) => proxy.close())));

  it.each(['hang', 'portal', 'reset'] as const)(
    'that answers with %s is found out by a control, rests, and is failed over within the call',
    async (kind) => {
      fakeYoutube.setFaults({ kind, match: { egress: '127.0.0.2' } });
      expect(ends(await readAll(VIDEOS.slice(0, 16)))).toEqual(['ok']);
      const rested = () => events('youtube_exit_rested');
      await fakeYoutube.requests.until(() => rested().length > 0);
      expect(rested()).toEqual([expect.objectContaining({ exit: 'proxy-1' })]);
      fakeYoutube.requests.clear();
      expect(ends(await readAll(VIDEOS.slice(16, 48)))).toEqual(['ok']);
      expect(fakeYoutube.requests.count({ egress: '127.0.0.2' })).toBe(0);
    },
  );
});

describe('a platform that cannot be reached', () => {
  it('is told from a response that could not be read', async () => {
    fakeYoutube.setFaults({ kind: 'reset' });
    const outcome = await read(ODD);
    expect(outcome).toMatchObject({
      failure: { code: 'upstream_failure', message: expect.stringMatching(/could not be reached/) },
    });
    expect(events('youtube_unreached')[0]).toMatchObject({ cause: expect.stringMatching(/\w/) });
    await expect(list(TIDEWATER.id)).rejects.toMatchObject({ message: expect.stringMatching(/could not be reached/) });
    fakeYoutube.setFaults({ kind: 'not-json' });
    const unreadable = await read(OTHER_ODD);
    expect(unreadable.ok ? '' : unreadable.failure.message).toBeUndefined();
  });
});

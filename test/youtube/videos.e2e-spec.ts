import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CLIENTS, videoId } from '../fake-youtube/catalogue/model.js';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Adapter, context, end, openAdapter, text } from './adapter.js';

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
  // All connections are closed again, and requests go to the base URL only.
  await fakeYoutube.requests.until((log) => log.sockets === 0 && log.inFlight === 0);
});

afterAll(() => fakeYoutube.close());

const read = (name: string, languages: string[] = []) =>
  adapter.platform.readVideo(videoId(name), languages, context());

describe('each state of a video', () => {
  it.each([
    ['hl-dinghy', 'ok'],
    ['hl-bowline', 'ok'],
    ['hl-keeper', 'ok'],
    ['hl-nets', 'ok'],
    ['hl-signs', 'ok'],
    ['hl-stream', 'ok'],
    ['hl-walk', 'ok'],
    ['hl-werft', 'ok'],
    ['hl-bells', 'ok'],
    ['hl-regatta', 'video_not_live_yet'],
    ['hl-tidecam', 'video_live'],
    ['hl-crew', 'video_members_only'],
    ['hl-private', 'video_private'],
    ['hl-deleted', 'video_unavailable'],
    ['hl-wreck', 'video_age_restricted'],
    ['hl-silent', 'transcript_unavailable'],
    ['hl-token', 'upstream_blocked'],
    ['hl-void', 'upstream_blocked'],
    ['hl-abroad', 'video_unavailable'],
    ['hl-shanty', 'video_unavailable'],
    ['nonexistent', 'video_unavailable'],
    // Single clients report these as unavailable.
    ['ps-kids', 'ok'],
    ['ps-kids-err', 'ok'],
    ['ps-noreel', 'ok'],
    ['ps-plain', 'ok'],
    ['ps-gone', 'video_unavailable'],
  ])('%s ends as %s', async (name, outcome) => {
    expect(end(await read(name))).toBe(outcome);
  });

  it('no video of the catalogue ends in an unexpected failure', async () => {
    const { platform } = adapter;
    const outcomes = await Promise.all(HARBOUR_LIGHT.uploads().map(({ id }) => platform.readVideo(id, [], context())));
    expect(outcomes.map(end)).not.toContain('upstream_failure');
    expect(outcomes.map(end)).not.toContain('upstream_timeout');
    // Its text is refused to every client.
    expect(adapter.logged.filter(({ event }) => event !== 'youtube_control_asked')).toEqual([
      expect.objectContaining({ event: 'youtube_video_refused', videoId: videoId('hl-void') }),
    ]);
  });

  it('an ordinary video costs one player request and one text', async () => {
    await read('hl-dinghy');
    fakeYoutube.requests.clear();
    await read('hl-island');
    expect(fakeYoutube.requests.list.map(({ kind, client }) => `${kind} ${client}`)).toEqual([
      'player ANDROID',
      'timedtext ANDROID',
    ]);
  });
});

describe('the metadata of a video that was never listed', () => {
  it.each(CLIENTS.filter((client) => client !== 'WEB'))(
    'is in the response of %s that is read for its tracks',
    async (client) => {
      await adapter.close();
      adapter = await openAdapter(fakeYoutube.url, { YOUTUBE_CLIENTS: [client] });
      const { details } = await read('hl-island');
      const video = HARBOUR_LIGHT.uploads().find(({ id }) => id === 'hl-island__');
      expect(details).toMatchObject({
        title: video?.title,
        durationSeconds: video?.durationSeconds,
        viewCount: video?.viewCount,
        thumbnailUrl: 'https://i.ytimg.com/vi/hl-island__/hq720.jpg',
        kind: 'video',
        publishedAt: null,
      });
      expect(fakeYoutube.requests.count({ kind: ['player', 'reel'] })).toBe(1);
    },
  );

  it.each([
    ['hl-tidecam', { kind: 'live', durationSeconds: null, title: expect.stringContaining('Harbour cam') }],
    ['hl-regatta', { kind: 'upcoming', durationSeconds: null, title: expect.stringContaining('Lantern Regatta') }],
    ['hl-wreck', { kind: 'video', title: expect.any(String), thumbnailUrl: expect.any(String) }],
    ['hl-private', { kind: null, title: null, thumbnailUrl: null, captionTracks: null }],
  ])('of %s, which has no transcript, is what the platform gives', async (name, details) => {
    expect((await read(name)).details).toMatchObject(details);
  });
});

describe('a video that a client reports as unavailable', () => {
  it.each(['bot-check', 'reload', 'forbidden'] as const)('is blocked when another client gets %s', async (kind) => {
    for (const client of ['IOS', 'ANDROID_REEL'] as const) {
      await adapter.close();
      adapter = await openAdapter(fakeYoutube.url);
      fakeYoutube.setFaults({ kind, match: { client } });
      expect(end(await read('ps-gone'))).toBe('upstream_blocked');
    }
  });
});

describe('client fallback', () => {
  it.each([
    ['a track whose URL requires a PO token', 'hl-planks', 0, 'ANDROID'],
    ['an empty caption response', 'hl-empty', 2, 'ANDROID'],
    // Made for kids: the reel plays it.
    ['a video that the client may not play', 'hl-oars', 0, 'ANDROID_REEL'],
  ])('%s is read with the next client', async (_case, name, textsOfTheFirst, client) => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, {
      YOUTUBE_CLIENTS: ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'],
    });
    expect(end(await read(name))).toBe('ok');
    expect(fakeYoutube.requests.count({ kind: 'timedtext', client: 'VISIONOS' })).toBe(textsOfTheFirst);
    expect(fakeYoutube.requests.count({ kind: 'timedtext', client })).toBe(1);
  });

  it('a bot check is reported as a block only when every client gets it, and the visitor data is renewed', async () => {
    fakeYoutube.setFaults({ kind: 'bot-check', match: { client: 'ANDROID' } });
    expect(end(await read('hl-island'))).toBe('ok');
    fakeYoutube.setFaults({ kind: 'bot-check' });
    expect(end(await read('hl-island'))).toBe('upstream_blocked');
  });

  it('private, members-only, removed, live and upcoming videos are requested with one client only, those without captions with two', async () => {
    await read('hl-dinghy');
    fakeYoutube.requests.clear();
    for (const name of ['hl-private', 'hl-crew', 'hl-tidecam', 'hl-regatta', 'hl-wreck']) await read(name);
    const players = () => fakeYoutube.requests.count({ kind: ['player', 'reel'] });
    expect(players()).toBe(5);
    await read('hl-silent');
    expect(players()).toBe(5 + 2);
  });

  it('an inaccessible track is not silently replaced by another one', async () => {
    expect(end(await read('hl-mixed', ['en']))).toBe('upstream_blocked');
    expect(end(await read('hl-mixed'))).toBe('upstream_blocked');
  });

  it('the order of clients is configurable', async () => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, { YOUTUBE_CLIENTS: ['ANDROID_VR', 'ANDROID'] });
    expect(end(await read('hl-island'))).toBe('ok');
    expect(fakeYoutube.requests.list.map(({ client }) => client)).toEqual(['ANDROID_VR', 'ANDROID_VR', 'ANDROID_VR']);
  });

  it('a client that ignores field masks is still read', async () => {
    fakeYoutube.set({ fieldsIgnored: [...CLIENTS] });
    expect(end(await read('hl-island'))).toBe('ok');
    expect(end(await read('hl-silent'))).toBe('transcript_unavailable');
  });
});

describe('WEB with PO tokens', () => {
  const down = () => adapter.logged.filter(({ event }) => event === 'youtube_po_token_provider_down');
  const reopen = async (choices: Parameters<typeof openAdapter>[1] = {}) => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, { PO_TOKEN_URL: fakeYoutube.url, ...choices });
  };

  it.each([
    ['announced by the URL', 'hl-token'],
    ['enforced without a sign', 'hl-void'],
  ])('returns a text whose token is %s', async (_case, name) => {
    await reopen();
    expect(end(await read(name))).toBe('ok');
    const texts = fakeYoutube.requests.list.filter(({ kind, client }) => kind === 'timedtext' && client === 'WEB');
    expect(texts.map(({ path }) => /[?&]pot=[\w-]+&potc=1&c=WEB(?:&|$)/.test(path))).toEqual([true]);
  });

  it('requests one token for a video and one player script', async () => {
    await reopen();
    for (const [name, languages] of [
      ['hl-token', []],
      ['hl-token', ['en']],
      ['hl-void', []],
    ] as const)
      expect(end(await read(name, [...languages]))).toBe('ok');
    expect(fakeYoutube.requests.count({ kind: 'po-token' })).toBe(2);
    expect(fakeYoutube.requests.count({ kind: 'page' })).toBe(2);
  });

  it('is not asked for videos that the other clients return', async () => {
    await reopen();
    for (const name of ['hl-dinghy', 'hl-private', 'ps-gone']) await read(name);
    expect(fakeYoutube.requests.count({ client: 'WEB' })).toBe(0);
    expect(fakeYoutube.requests.count({ kind: 'po-token' })).toBe(0);
  });

  it('has the last word on a video without captions on the apps, which are not shown styled tracks', async () => {
    const app = await read('ps-webonly');
    expect([end(app), app]).toEqual(['transcript_unavailable', expect.not.objectContaining({ confirmed: false })]);
    await reopen();
    expect(text(await read('ps-webonly'), 'en')).toContain('green is right');
    expect(end(await read('hl-silent'))).toBe('transcript_unavailable');
    await reopen();
    fakeYoutube.setFaults({ kind: '500', match: { kind: 'po-token' } });
    expect(await read('ps-webonly')).toMatchObject({ failure: { code: 'transcript_unavailable' }, confirmed: false });
  });

  it('returns styled tracks that the other clients leave out, when it is listed first', async () => {
    expect(end(await read('ps-webonly'))).toBe('transcript_unavailable');
    await reopen({ YOUTUBE_CLIENTS: ['WEB', 'VISIONOS', 'ANDROID'] });
    expect(text(await read('ps-webonly'), 'en')).toContain('green is right');
    expect(end(await read('ps-webonly', ['en']))).toBe('ok');
    const silent = await read('hl-silent');
    expect([end(silent), silent]).toEqual([
      'transcript_unavailable',
      expect.not.objectContaining({ confirmed: false }),
    ]);
    expect(end(await read('hl-werft', ['sw']))).toBe('language_unavailable');
  });

  it('is skipped while the provider fails, and no outcome differs', async () => {
    const names = ['hl-token', 'hl-void', 'hl-mixed', 'hl-silent', 'ps-webonly', 'ps-gone', 'hl-abroad', 'hl-island'];
    const without = [];
    for (const name of names) without.push(end(await read(name)));
    await reopen({ YOUTUBE_CLIENTS: ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR', 'WEB'] });
    fakeYoutube.setFaults({ kind: '500', match: { kind: 'po-token' } });
    for (const [index, name] of names.entries()) expect([name, end(await read(name))]).toEqual([name, without[index]]);
    expect(down()).toHaveLength(1);
    expect(fakeYoutube.requests.count({ kind: 'po-token' })).toBe(3);
  });

  it('with a token that the platform refuses is a block, and the next attempt requests another', async () => {
    await reopen();
    fakeYoutube.setFaults(
      { kind: 'token-enforced', match: { client: 'WEB' } },
      { kind: 'bot-check', match: { kind: 'player', client: 'WEB' } },
    );
    expect(end(await read('hl-token'))).toBe('upstream_blocked');
    fakeYoutube.setFaults();
    expect(end(await read('hl-token'))).toBe('ok');
    expect(fakeYoutube.requests.count({ kind: 'po-token' })).toBe(2);
  });
});

describe('videos of a job', () => {
  const readAll = (count: number, background: boolean) => {
    const of = context({ background });
    return HARBOUR_LIGHT.uploads()
      .slice(0, count)
      .map(({ id }) => adapter.platform.readVideo(id, [], of));
  };

  it('leave places among the requests to calls, which go before those that wait', async () => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_CONCURRENCY: 4 });
    await read('hl-dinghy');
    fakeYoutube.requests.clear();
    const hold = fakeYoutube.hold({ kind: ['player', 'timedtext'] });
    const job = readAll(12, true);
    await fakeYoutube.requests.until((log) => log.inFlight === 3);
    const call = read('hl-island');
    await fakeYoutube.requests.until((log) => log.inFlight === 4);
    expect(fakeYoutube.requests.list.at(-1)?.videoId).toBe('hl-island__');
    hold.release();
    expect(end(await call)).toBe('ok');
    await Promise.all(job);
  });
});

describe('requested languages', () => {
  it('every requested language that the video has is returned, in the requested order', async () => {
    const outcome = await read('hl-keeper', ['fr', 'xx', 'en']);
    expect(outcome.ok && [...outcome.transcript.keys()]).toEqual(['fr', 'en']);
  });

  it('if none is available, the error lists the available languages', async () => {
    const outcome = await read('hl-werft', ['sw']);
    expect(outcome).toMatchObject({ ok: false, failure: { code: 'language_unavailable' } });
    expect(outcome.ok ? '' : outcome.failure.message).toContain('de');
  });

  it('json3 is used when the XML is unreadable, and has the same text', async () => {
    const plain = await read('hl-island');
    fakeYoutube.setFaults({ kind: 'truncated', match: { path: /timedtext(?!.*fmt=json3)/ } });
    const fallback = await read('hl-island');
    expect(fallback.ok && plain.ok && [...fallback.transcript]).toEqual(plain.ok && [...plain.transcript]);
  });
});

describe('exact dates', () => {
  beforeEach(async () => {
    await adapter.close();
    adapter = await openAdapter(fakeYoutube.url, { PUBLISH_DATES: 'exact' });
  });

  it('require one additional request per video', async () => {
    const outcome = await read('hl-island');
    expect(outcome.details.publishedAt).toMatch(/^2026-08-01T12:00:00/);
    expect(fakeYoutube.requests.count({ kind: 'player', client: 'WEB' })).toBe(1);
  });

  it('are null when that request fails, and the text is still returned', async () => {
    fakeYoutube.setFaults({ kind: '500', match: { client: 'WEB' } });
    const outcome = await read('hl-island');
    expect([end(outcome), outcome.details.publishedAt]).toEqual(['ok', null]);
  });
});

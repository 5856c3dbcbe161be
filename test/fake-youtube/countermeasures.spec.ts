import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Client } from './catalogue/model.js';
import { type FakeYoutube, startFakeYoutube } from './fake-youtube.js';
import type { FaultKind } from './faults/fault-registry.js';
import { postInnertube, type Reply, request, textAt, valueAt } from './requests.js';

let fakeYoutube: FakeYoutube;
beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});
beforeEach(() => fakeYoutube.reset());
afterAll(() => fakeYoutube.close());

const TRACKS = 'captions.playerCaptionsTracklistRenderer.captionTracks';
const VISITOR = 'responseContext.visitorData';

/** A request by a client; `ANDROID_REEL` uses the reel endpoint, whose player response is returned. */
async function play(client: Client, videoId: string, more: object = {}, visitorData?: string): Promise<Reply> {
  const clientName = client === 'ANDROID_REEL' ? 'ANDROID' : client;
  const context = { client: { clientName, clientVersion: '1.0', ...(visitorData && { visitorData }) } };
  if (client !== 'ANDROID_REEL') return postInnertube(fakeYoutube.url, 'player', { videoId, ...more, context });
  const body = { playerRequest: { videoId }, context };
  const reply = await postInnertube(fakeYoutube.url, 'reel/reel_item_watch', body);
  return { ...reply, json: valueAt(reply.json, 'playerResponse') };
}

const playability = ({ json }: Reply) => valueAt(json, 'playabilityStatus');
const status = async (client: Client, videoId: string) =>
  textAt((await play(client, videoId)).json, 'playabilityStatus.status');

describe('the clients', () => {
  it.each<[string, string[]]>([
    ['ps-plain___', ['OK', 'OK', 'OK', 'OK', 'OK']],
    ['ps-kids____', ['UNPLAYABLE', 'OK', 'OK', 'OK', 'UNPLAYABLE']],
    ['ps-kids-err', ['ERROR', 'OK', 'OK', 'OK', 'ERROR']],
    ['ps-noreel__', ['OK', 'OK', 'OK', '', 'OK']],
    ['ps-webless_', ['ERROR', 'ERROR', 'ERROR', 'OK', 'ERROR']],
    ['ps-gone____', ['ERROR', 'ERROR', 'ERROR', '', 'ERROR']],
  ])('differ about %s', async (videoId, expected) => {
    const clients: Client[] = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'];
    expect(await Promise.all(clients.map((client) => status(client, videoId)))).toEqual(expected);
  });

  it('are distinguished by name, and the reel by its path', async () => {
    await play('ANDROID_REEL', 'ps-plain___');
    await postInnertube(fakeYoutube.url, 'player', {
      videoId: 'ps-plain___',
      context: { client: { clientName: 'iOS', clientVersion: '21.26.4' } },
    });
    expect(fakeYoutube.requests.list.map(({ client, clientVersion }) => [client, clientVersion])).toEqual([
      ['ANDROID_REEL', '1.0'],
      ['IOS', '21.26.4'],
    ]);
  });
});

describe('visitor data', () => {
  const issue = async (client: Client, sent?: string): Promise<string> => {
    const context = { client: { clientName: client, ...(sent && { visitorData: sent }) } };
    return textAt((await postInnertube(fakeYoutube.url, 'visitor_id', { context })).json, VISITOR);
  };

  it('is issued when none is sent and repeated otherwise', async () => {
    expect(await issue('VISIONOS')).not.toBe(await issue('VISIONOS'));
    expect(await issue('VISIONOS', 'own')).toBe('own');
    expect(textAt((await play('VISIONOS', 'ps-plain___', {}, 'own')).json, VISITOR)).toBe('own');
  });

  it('can be required: issued, for the client; a bot check brings some', async () => {
    fakeYoutube.set({ visitorDataRequired: true });
    const [visionos, android] = [await issue('VISIONOS'), await issue('ANDROID')];
    const ends = [
      await play('VISIONOS', 'ps-plain___', {}, visionos),
      await play('VISIONOS', 'ps-plain___', {}, android),
      await play('ANDROID_REEL', 'ps-plain___', {}, android),
      await play('VISIONOS', 'ps-plain___', {}, 'own'),
    ].map((reply) => textAt(reply.json, 'playabilityStatus.status'));
    expect(ends).toEqual(['OK', 'LOGIN_REQUIRED', 'OK', 'LOGIN_REQUIRED']);
    const adopted = textAt((await play('VISIONOS', 'ps-plain___')).json, VISITOR);
    expect(playability(await play('VISIONOS', 'ps-plain___', {}, adopted))).toMatchObject({ status: 'OK' });
  });

  it('of a bot check is the only accepted one: bot-check-renewed', async () => {
    fakeYoutube.setFaults({ kind: 'bot-check-renewed' });
    const checked = await play('VISIONOS', 'ps-plain___', {}, await issue('VISIONOS'));
    expect(playability(checked)).toMatchObject({ status: 'LOGIN_REQUIRED' });
    const adopted = textAt(checked.json, VISITOR);
    expect(playability(await play('VISIONOS', 'ps-plain___', {}, adopted))).toMatchObject({ status: 'OK' });
  });
});

describe('a refusal', () => {
  it.each<[FaultKind, object]>([
    ['reload', { reason: 'The page needs to be reloaded.' }],
    ['reload-screen', { reason: 'Video unavailable', errorScreen: expect.anything() }],
    ['player-captcha', { status: 'ERROR', errorScreen: { playerCaptchaViewModel: expect.anything() } }],
    ['retired-reason', { status: 'ERROR', reason: expect.stringContaining('latest version of YouTube') }],
    ['retired-subreason', { status: 'UNPLAYABLE', reason: 'Video unavailable' }],
    ['retired-screen', { status: 'ERROR', reason: 'This video is unavailable' }],
  ])('is a playability of the player and the reel, without details: %s', async (kind, expected) => {
    fakeYoutube.setFaults({ kind });
    for (const client of ['VISIONOS', 'ANDROID_REEL'] as const) {
      const reply = await play(client, 'ps-plain___');
      expect(playability(reply)).toMatchObject(expected);
      expect(reply.json).not.toHaveProperty('videoDetails');
    }
  });

  it.each<[FaultKind, number, string]>([
    ['sorry-200', 200, 'automated queries'],
    ['sorry-403', 403, 'automated queries'],
    ['sorry-503', 503, 'automated queries'],
    ['forbidden', 403, ''],
  ])('is a page: %s', async (kind, code, words) => {
    fakeYoutube.setFaults({ kind });
    const reply = await play('VISIONOS', 'ps-plain___');
    expect(reply.status).toBe(code);
    expect(reply.text).toContain(words);
    expect(reply.json).toBeNull();
  });

  it('concerns one version of a client: retired', async () => {
    fakeYoutube.setFaults({ kind: 'retired', match: { client: 'VISIONOS', clientVersion: '1.0' } });
    const { status: code, json } = await play('VISIONOS', 'ps-plain___');
    expect([code, valueAt(json, 'error.status')]).toEqual([400, 'FAILED_PRECONDITION']);
    expect((await play('IOS', 'ps-plain___')).status).toBe(200);
    const newer = { context: { client: { clientName: 'VISIONOS', clientVersion: '1.04' } } };
    expect((await postInnertube(fakeYoutube.url, 'player', { videoId: 'ps-plain___', ...newer })).status).toBe(200);
  });

  it('of the feed is a 404: feed-unavailable', async () => {
    fakeYoutube.setFaults({ kind: 'feed-unavailable' });
    const feed = await request(`${fakeYoutube.url}/feeds/videos.xml?channel_id=UCpilotschool___________`);
    expect(feed.status).toBe(404);
    expect(await status('VISIONOS', 'ps-plain___')).toBe('OK');
  });
});

describe('PO tokens', () => {
  const token = async (videoId: string): Promise<string> => {
    const init = { method: 'POST', body: JSON.stringify({ content_binding: videoId }) };
    const { json } = await request(`${fakeYoutube.url}/get_pot`, init);
    expect(json).toMatchObject({ contentBinding: videoId, expiresAt: expect.any(String) });
    return textAt(json, 'poToken');
  };
  const asWeb = async (videoId: string, poToken: string, signatureTimestamp = 20_345): Promise<Reply> =>
    play('WEB', videoId, {
      serviceIntegrityDimensions: { poToken },
      playbackContext: { contentPlaybackContext: { signatureTimestamp } },
    });

  it('let WEB play, with the timestamp of the player script', async () => {
    const poToken = await token('ps-styled__');
    expect(playability(await play('WEB', 'ps-styled__'))).toMatchObject({ status: 'LOGIN_REQUIRED' });
    expect(playability(await asWeb('ps-styled__', poToken, 1))).toMatchObject({
      reason: 'The page needs to be reloaded.',
    });
    expect(playability(await asWeb('ps-plain___', poToken))).toMatchObject({ status: 'LOGIN_REQUIRED' });
    expect(playability(await asWeb('ps-styled__', poToken))).toMatchObject({ status: 'OK' });
  });

  it('give WEB the styled manual track that the apps leave out, and its text', async () => {
    const poToken = await token('ps-styled__');
    expect(valueAt((await play('VISIONOS', 'ps-styled__')).json, TRACKS)).toHaveLength(1);
    const { json } = await asWeb('ps-styled__', poToken);
    expect(valueAt(json, TRACKS)).toHaveLength(2);
    const url = textAt(json, `${TRACKS}[0].baseUrl`).replace('https://www.youtube.com', fakeYoutube.url);
    expect(url).toContain('exp=xpe');
    expect((await request(url)).text).toBe('');
    expect((await request(`${url}&pot=${poToken}&potc=1&c=WEB`)).text).toContain('left');
  });

  it('expire', async () => {
    fakeYoutube.set({ poTokenSeconds: 0 });
    expect(playability(await asWeb('ps-plain___', await token('ps-plain___')))).toMatchObject({
      status: 'LOGIN_REQUIRED',
    });
  });

  it('can be enforced on a text although its URL requires none', async () => {
    const { json } = await play('VISIONOS', 'ps-plain___');
    const url = textAt(json, `${TRACKS}[0].baseUrl`).replace('https://www.youtube.com', fakeYoutube.url);
    expect((await request(url)).text).toContain('rabbit');
    fakeYoutube.setFaults({ kind: 'token-enforced' });
    expect(await request(url)).toMatchObject({ status: 200, text: '' });
  });

  it('need a timestamp that two pages lead to', async () => {
    const api = await request(`${fakeYoutube.url}/iframe_api`);
    const [, player] = /player\\\/([0-9a-f]+)\\\//.exec(api.text) ?? [];
    const script = await request(`${fakeYoutube.url}/s/player/${player}/player_ias.vflset/en_US/base.js`);
    expect(script.text).toContain('signatureTimestamp:20345');
    expect((await request(`${fakeYoutube.url}/watch?v=ps-plain___`)).text).toContain('"STS":20345');
  });
});

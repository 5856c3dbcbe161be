import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube.js';

// What the adapter reads of it is tested in test/youtube/published.e2e-spec.ts.

let fakeYoutube: FakeYoutube;
let other: FakeYoutube;
beforeAll(async () => {
  [fakeYoutube, other] = await Promise.all([startFakeYoutube(), startFakeYoutube()]);
});
beforeEach(() => fakeYoutube.reset());
afterAll(() => Promise.all([fakeYoutube.close(), other.close()]));

const post = async (page: string, body: unknown): Promise<{ status: number; body: unknown }> => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${fakeYoutube.url}/fake-youtube/${page}`, { method: 'POST', body: text });
  return { status: response.status, body: await response.json() };
};

/** The IDs in the feed of Tidewater, newest first. */
const feed = async ({ url }: FakeYoutube = fakeYoutube): Promise<string[]> => {
  const response = await fetch(`${url}/feeds/videos.xml?channel_id=UCtidewater_____________`);
  return [...(await response.text()).matchAll(/<yt:videoId>(.*)<\/yt:videoId>/g)].map(([, id]) => id ?? '');
};

describe('publishing over the control pages', () => {
  it('puts videos on a channel of this server alone, until a reset', async () => {
    const before = await feed();
    const first = await post('publish', { channel: '@tidewater' });
    expect(first).toEqual({ status: 200, body: { videoIds: [expect.stringMatching(/^pb-\d{8}$/)] } });
    const many = { channel: 'UCtidewater_____________', count: 2, title: 'Eel', publishedAt: '2026-11-02T10:00:00Z' };
    await post('publish', many);
    expect(await feed()).toHaveLength(before.length + 3);
    expect(await feed(other)).toEqual(before);
    await post('reset', '');
    expect(await feed()).toEqual(before);
  });

  it('never gives an ID twice, also after a reset', () => {
    const [earlier] = fakeYoutube.publish({ channel: '@tidewater' });
    fakeYoutube.reset();
    expect(fakeYoutube.publish({ channel: '@tidewater' })).not.toContain(earlier);
  });

  it('changes and deletes videos, also those of the catalogue, and the order of the list', async () => {
    const [chowder, bread, mackerel, pickles, tea] = await feed();
    await post('videos', { videoIds: [chowder], as: 'private' });
    await post('videos', { videoIds: [mackerel], deleted: true });
    await post('channel', { channel: '@tidewater', order: [tea, pickles] });
    expect(await feed()).toEqual([tea, pickles, bread]);
    await post('videos', { videoIds: [chowder], as: 'video' });
    expect(await feed()).toEqual([tea, pickles, chowder, bread]);
  });

  it('terminates a channel and restores it', async () => {
    const before = await feed();
    await post('channel', { channel: '@tidewater', terminated: true });
    expect(await feed()).toEqual([]);
    await post('channel', { channel: '@tidewater', terminated: false });
    expect(await feed()).toEqual(before);
  });

  it.each([
    ['publish', ''],
    ['publish', { channel: '@nobody-here' }],
    ['publish', { channel: '@tidewater', as: 'rain' }],
    ['publish', { channel: '@tidewater', publishedAt: 'today' }],
    ['videos', { videoIds: ['pb-nothing__'], as: 'video' }],
    ['videos', { videoIds: [] }],
    ['channel', { channel: '@tidewater', handle: 'tidewater' }],
    ['channel', { channel: '@tidewater', order: ['hl-dinghy__'] }],
  ])('of %s rejects %j with the reason', async (page, body) => {
    const reason = { error: expect.stringMatching(/^[^\n]{10,}$/) };
    expect(await post(page, body)).toEqual({ status: 400, body: reason });
  });

  it('is described by the page of the server', async () => {
    expect(await (await fetch(fakeYoutube.url)).text()).toContain('POST /fake-youtube/publish');
  });
});

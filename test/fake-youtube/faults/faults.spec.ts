import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube.js';

// What the tests of the service show anyway, such as the form of each response, is not tested here.

let fakeYoutube: FakeYoutube;
beforeAll(async () => {
  fakeYoutube = await startFakeYoutube({ seed: 7 });
});
beforeEach(() => fakeYoutube.reset());
afterAll(() => fakeYoutube.close());

const player = (videoId = 'tw-bread___'): Promise<Response> => {
  const body = JSON.stringify({ videoId, context: { client: { clientName: 'VISIONOS' } } });
  return fetch(`${fakeYoutube.url}/youtubei/v1/player`, { method: 'POST', body });
};
const feedUrl = (): string => `${fakeYoutube.url}/feeds/videos.xml?channel_id=UCtidewater_____________`;

describe('a fault', () => {
  it('applies only to matching requests, at most the configured number of times', async () => {
    const match = { kind: 'player', client: 'VISIONOS', videoId: 'tw-bread___' } as const;
    fakeYoutube.setFaults({ kind: '500', match, times: 2 });
    const statuses = [];
    for (const videoId of ['tw-tea_____', 'tw-bread___', 'tw-bread___', 'tw-bread___'])
      statuses.push((await player(videoId)).status);
    expect(statuses).toEqual([200, 500, 500, 200]);
  });

  it('applies to the share of requests given by its rate, and to the same ones for a seed', async () => {
    const hits = async (): Promise<number[]> => {
      fakeYoutube.setFaults({ kind: '429', match: { path: /^\/feeds/ }, rate: 0.3 });
      const hit = [];
      for (let index = 0; index < 200; index += 1) if ((await fetch(feedUrl())).status === 429) hit.push(index);
      return hit;
    };
    const first = await hits();
    expect(first.length).toBeGreaterThan(40);
    expect(first.length).toBeLessThan(80);
    expect(await hits()).toEqual(first);
  });

  it('is not consumed by an aborted request', async () => {
    fakeYoutube.setFaults({ kind: '500', times: 1 });
    const hold = fakeYoutube.hold({});
    const caller = new AbortController();
    const given = fetch(feedUrl(), { signal: caller.signal });
    await hold.arrived;
    caller.abort();
    await expect(given).rejects.toThrow();
    await fakeYoutube.requests.until(({ aborted }) => aborted === 1);
    hold.release();
    expect((await player()).status).toBe(500);
  });
});

describe('the controls over HTTP', () => {
  const change = (body: string): Promise<Response> =>
    fetch(`${fakeYoutube.url}/fake-youtube/faults`, { method: 'POST', body });

  it('set faults and settings, count requests, and reset', async () => {
    await change('{"faults":[{"kind":"500","match":{"kind":["player"],"client":"VISIONOS"}}],"playlistShape":"old"}');
    expect((await player()).status).toBe(500);
    const counts = await fetch(`${fakeYoutube.url}/fake-youtube/requests`);
    expect(await counts.json()).toMatchObject({ total: 1, kind: { player: 1 }, client: { VISIONOS: 1 } });
    await fetch(`${fakeYoutube.url}/fake-youtube/reset`, { method: 'POST' });
    expect((await player()).status).toBe(200);
  });

  it.each(['', '[]', '{"fault":[]}', '{"faults":{}}', '{"faults":[{"kind":"rain"}]}'])(
    'reject %j with the reason',
    async (body) => {
      const refused = await change(body);
      expect(refused.status).toBe(400);
      expect(await refused.json()).toEqual({ error: expect.stringMatching(/^[^\n]{10,}$/) });
    },
  );
});

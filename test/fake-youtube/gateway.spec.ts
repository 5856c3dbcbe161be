import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ProxyAgent, request } from 'undici';
import { type FakeYoutube, startFakeYoutube } from './fake-youtube.js';
import { type Gateway, startGateway } from './gateway.js';

let fakeYoutube: FakeYoutube;
let gateway: Gateway;
beforeEach(async () => {
  fakeYoutube = await startFakeYoutube();
  gateway = await startGateway();
});
afterEach(async () => {
  await gateway.close();
  await fakeYoutube.close();
});

async function through(session: string): Promise<void> {
  const dispatcher = new ProxyAgent(gateway.url.replace('{session}', session));
  const { body } = await request(`${fakeYoutube.url}/feeds/videos.xml`, { dispatcher });
  await body.text();
  await dispatcher.close();
}

describe('a gateway', () => {
  it('gives each session an address of its own, and a connection without one a new one', async () => {
    for (const session of ['a', 'a', 'b', '', '']) await through(session);
    const [first, again, other, ...fresh] = fakeYoutube.requests.list.map(({ egress }) => egress);
    expect(again).toBe(first);
    expect(new Set([first, other, ...fresh]).size).toBe(4);
    expect(fakeYoutube.requests.count({ egress: gateway.addressOf('a') })).toBe(2);
    expect(gateway.sessions).toEqual(['a', 'b', '']);
    expect(gateway.tunnels.get('a')).toBe(2);
  });
});

import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { YoutubeClient } from '../../../config/environment.js';
import { ClientHealth } from './client-health.js';
import { EgressPool } from '../egress/egress-pool.js';

function clientHealth() {
  const clock = { nowMs: 0 };
  const events: [YoutubeClient, number | null][] = [];
  const clients = new ClientHealth(
    ['VISIONOS', 'ANDROID', 'ANDROID_VR'],
    (_egress, client, cooldownMs) => events.push([client, cooldownMs]),
    () => clock.nowMs,
  );
  const egresses = new EgressPool({
    registry: new Registry(),
    proxyUrls: ['http://a.invalid', 'http://b.invalid'],
    connectionsMax: 1,
    connectTimeoutMs: 1,
  });
  const [one, other] = [egresses.take('video')?.egress, egresses.take('video')?.egress];
  if (!one || !other) throw new Error('no exits');
  return { clients, clock, events, one, other };
}

/** Reads videos of which the first client is refused and the second one brings the text; says who was asked. */
function read(
  { clients, one }: ReturnType<typeof clientHealth>,
  video: string,
  refused: readonly string[] = ['VISIONOS'],
) {
  const asked: string[] = [];
  for (const { client, admission } of clients.candidates(one)) {
    asked.push(client);
    if (refused.includes(client)) admission?.blocked(video);
    else {
      admission?.succeeded();
      break;
    }
  }
  return asked;
}

const FIVE = ['a', 'b', 'c', 'd', 'e'];

describe('ClientHealth', () => {
  it('a client refused for five videos in a row moves to the end of the fallback order, for this egress only', () => {
    const scene = clientHealth();
    for (const video of FIVE) expect(read(scene, video)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read(scene, 'f')).toEqual(['ANDROID']);
    expect(scene.events).toEqual([['VISIONOS', 30_000]]);
    expect([...scene.clients.candidates(scene.one)].map(({ client }) => client)).toEqual([
      'ANDROID',
      'ANDROID_VR',
      'VISIONOS',
    ]);
    expect([...scene.clients.candidates(scene.other)].map(({ client }) => client)[0]).toBe('VISIONOS');
  });

  it('is tried first again by one video after a pause, which grows when that is refused', () => {
    const scene = clientHealth();
    for (const video of FIVE) read(scene, video);
    scene.clock.nowMs += 30_000;
    expect(read(scene, 'f')).toEqual(['VISIONOS', 'ANDROID']);
    expect(read(scene, 'g')).toEqual(['ANDROID']);
    expect(scene.events.at(-1)).toEqual(['VISIONOS', 60_000]);
    scene.clock.nowMs += 60_000;
    expect(read(scene, 'h', [])).toEqual(['VISIONOS']);
    expect(read(scene, 'i', [])).toEqual(['VISIONOS']);
    expect(scene.events.at(-1)).toEqual(['VISIONOS', null]);
  });

  it('a single refused video does not change the order', () => {
    const scene = clientHealth();
    for (const video of [...FIVE, ...FIVE.map((each) => each + each)]) {
      read(scene, video);
      read(scene, 'good', []);
    }
    expect(scene.events).toEqual([]);
  });

  it('the configured order applies when all clients are refused', () => {
    const scene = clientHealth();
    const all = ['VISIONOS', 'ANDROID', 'ANDROID_VR'];
    for (const video of FIVE) read(scene, video, all);
    expect(read(scene, 'f', all)).toEqual(all);
  });
});

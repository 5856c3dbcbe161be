import { describe, expect, it } from '@jest/globals';
import type { YoutubeClient } from '../../../config/environment.js';
import { ClientStanding } from './client-health.js';
import { Exits } from '../egress/egress-pool.js';

function standing() {
  const clock = { nowMs: 0 };
  const told: [YoutubeClient, number | null][] = [];
  const clients = new ClientStanding(
    ['VISIONOS', 'ANDROID', 'ANDROID_VR'],
    (_exit, client, restMs) => told.push([client, restMs]),
    () => clock.nowMs,
  );
  const exits = new Exits({
    proxyUrls: ['http://a.invalid', 'http://b.invalid'],
    connectionsMax: 1,
    connectTimeoutMs: 1,
  });
  const [one, other] = [exits.take('video')?.exit, exits.take('video')?.exit];
  if (!one || !other) throw new Error('no exits');
  return { clients, clock, told, one, other };
}

/** Reads videos of which the first client is refused and the second one brings the text; says who was asked. */
function read({ clients, one }: ReturnType<typeof standing>, video: string, refused: readonly string[] = ['VISIONOS']) {
  const asked: string[] = [];
  for (const { client, admission } of clients.ladder(one)) {
    asked.push(client);
    if (refused.includes(client)) admission?.blocked(video);
    else {
      admission?.answered();
      break;
    }
  }
  return asked;
}

const FIVE = ['a', 'b', 'c', 'd', 'e'];

describe('ClientStanding', () => {
  it('a client refused for five videos in a row goes to the end of the ladder, at this exit only', () => {
    const scene = standing();
    for (const video of FIVE) expect(read(scene, video)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read(scene, 'f')).toEqual(['ANDROID']);
    expect(scene.told).toEqual([['VISIONOS', 30_000]]);
    expect([...scene.clients.ladder(scene.one)].map(({ client }) => client)).toEqual([
      'ANDROID',
      'ANDROID_VR',
      'VISIONOS',
    ]);
    expect([...scene.clients.ladder(scene.other)].map(({ client }) => client)[0]).toBe('VISIONOS');
  });

  it('is tried first again by one video after a while, and rests longer when that is refused', () => {
    const scene = standing();
    for (const video of FIVE) read(scene, video);
    scene.clock.nowMs += 30_000;
    expect(read(scene, 'f')).toEqual(['VISIONOS', 'ANDROID']);
    expect(read(scene, 'g')).toEqual(['ANDROID']);
    expect(scene.told.at(-1)).toEqual(['VISIONOS', 60_000]);
    scene.clock.nowMs += 60_000;
    expect(read(scene, 'h', [])).toEqual(['VISIONOS']);
    expect(read(scene, 'i', [])).toEqual(['VISIONOS']);
    expect(scene.told.at(-1)).toEqual(['VISIONOS', null]);
  });

  it('one refused video among good ones changes nothing', () => {
    const scene = standing();
    for (const video of [...FIVE, ...FIVE.map((each) => each + each)]) {
      read(scene, video);
      read(scene, 'good', []);
    }
    expect(scene.told).toEqual([]);
  });

  it('when all are refused the order is the one that was configured', () => {
    const scene = standing();
    const all = ['VISIONOS', 'ANDROID', 'ANDROID_VR'];
    for (const video of FIVE) read(scene, video, all);
    expect(read(scene, 'f', all)).toEqual(all);
  });
});

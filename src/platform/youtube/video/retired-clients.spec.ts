import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { YoutubeClient } from '../../../config/environment.js';
import { RetiredClients } from './retired-clients.js';

const MINUTE_MS = 60_000;

function retiredClients() {
  const clock = { nowMs: 0 };
  const registry = new Registry();
  const events: [YoutubeClient, number | null][] = [];
  const clients = new RetiredClients(
    ['VISIONOS', 'ANDROID'],
    registry,
    (...event) => events.push(event),
    () => clock.nowMs,
  );
  const ask = (video: string, served: boolean, client: YoutubeClient = 'VISIONOS'): boolean => {
    const admission = clients.admit(client);
    if (served) admission?.succeeded();
    else admission?.blocked(video);
    return admission !== null;
  };
  const gauge = async () => {
    const { values } = (await registry.getSingleMetric('ct_upstream_client_retired')?.get()) ?? { values: [] };
    return new Map(values.map(({ labels, value }) => [labels['client'], value]));
  };
  return { clients, clock, ask, gauge, events };
}

describe('RetiredClients', () => {
  it('disables a client after three different videos in a row', async () => {
    const { ask, gauge } = retiredClients();
    expect(['a', 'b', 'c', 'd'].map((video) => ask(video, false))).toEqual([true, true, true, false]);
    expect(ask('d', true, 'ANDROID')).toBe(true);
    expect(await gauge()).toEqual(
      new Map([
        ['VISIONOS', 1],
        ['ANDROID', 0],
      ]),
    );
  });

  it('does not disable a client for one video, however often it is asked for, or for videos between successes', async () => {
    const { ask, gauge } = retiredClients();
    for (let times = 0; times < 10; times += 1) expect(ask('odd', false)).toBe(true);
    for (const video of ['a', 'b', 'c', 'd', 'e']) {
      ask(video, false);
      ask('fine', true);
    }
    expect(await gauge()).toEqual(
      new Map([
        ['VISIONOS', 0],
        ['ANDROID', 0],
      ]),
    );
  });

  it('asks one client after the other when all are disabled, and those that are served are used again', async () => {
    const { clients, ask, gauge } = retiredClients();
    expect(clients.admitDisabled()).toBeNull();
    for (const video of ['a', 'b', 'c']) ask(video, false);
    expect(clients.admitDisabled()).toBeNull();
    for (const video of ['a', 'b', 'c']) ask(video, false, 'ANDROID');
    const asked = [1, 2, 3, 4].map(() => {
      const disabled = clients.admitDisabled();
      disabled?.version.blocked('odd');
      return disabled?.client;
    });
    expect(asked).toEqual(['VISIONOS', 'ANDROID', 'VISIONOS', 'ANDROID']);
    clients.admitDisabled()?.version.succeeded();
    expect(await gauge()).toEqual(
      new Map([
        ['VISIONOS', 0],
        ['ANDROID', 1],
      ]),
    );
    expect(clients.admitDisabled()).toBeNull();
    expect(ask('d', true)).toBe(true);
  });

  it('a client is served from a response of its version for an hour', () => {
    const { clients, clock, ask } = retiredClients();
    expect(clients.isServed('VISIONOS')).toBe(false);
    ask('a', false);
    expect(clients.isServed('VISIONOS')).toBe(false);
    ask('b', true);
    clock.nowMs += 60 * MINUTE_MS - 1;
    expect([clients.isServed('VISIONOS'), clients.isServed('ANDROID')]).toEqual([true, false]);
    ask('c', false);
    clock.nowMs += 1;
    expect(clients.isServed('VISIONOS')).toBe(false);
    for (const client of ['VISIONOS', 'ANDROID'] as const)
      for (const video of ['a', 'b', 'c']) ask(video, false, client);
    clients.admitDisabled()?.version.succeeded();
    expect(clients.isServed('VISIONOS')).toBe(true);
  });

  it('lets one video probe the client after 10 minutes, doubling to 6 hours, until it is served again', async () => {
    const { clients, clock, ask, gauge, events } = retiredClients();
    for (const video of ['a', 'b', 'c']) ask(video, false);
    for (const minutes of [10, 20, 40, 80, 160, 320, 360, 360]) {
      clock.nowMs += minutes * MINUTE_MS - 1;
      expect(ask('early', true)).toBe(false);
      clock.nowMs += 1;
      const probe = clients.admit('VISIONOS');
      expect(probe).not.toBeNull();
      expect(clients.admit('VISIONOS')).toBeNull();
      probe?.blocked('probe');
    }
    clock.nowMs += 360 * MINUTE_MS;
    expect(ask('probe', true)).toBe(true);
    expect(ask('next', true)).toBe(true);
    expect(events).toEqual([
      ['VISIONOS', 600_000],
      ['VISIONOS', null],
    ]);
    expect(await gauge()).toEqual(
      new Map([
        ['VISIONOS', 0],
        ['ANDROID', 0],
      ]),
    );
  });
});

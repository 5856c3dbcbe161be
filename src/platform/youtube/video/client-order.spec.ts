import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
import { newPool, newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { seededRandom } from '../../../../test/fake-youtube/catalogue/random.js';
import { recordedEvents } from '../../../../test/youtube/recorded-events.js';
import { WebVersion } from '../innertube/web-version.js';
import { ClientOrder, type ClientResult } from './client-order.js';

const CLIENTS: YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS', 'WEB'];
const HOUR_MS = 3_600_000;

type Ends = Partial<Record<YoutubeClient, ClientResult['end']>>;

function clientOrder(clients = CLIENTS, poTokenUrl?: string) {
  const clock = { nowMs: 0 };
  const registry = new Registry();
  const events = recordedEvents();
  class TimedOrder extends ClientOrder {
    protected override now = () => clock.nowMs;
  }
  const environment = Object.assign(new Environment(), {
    YOUTUBE_CLIENTS: clients,
    ...(poTokenUrl !== undefined && { PO_TOKEN_URL: poTokenUrl }),
  });
  const order = new TimedOrder(environment, registry, new WebVersion());
  const pool = newPool(['http://a.invalid', 'http://b.invalid', 'http://{session}.invalid']);
  const [one, other, session] = [nextEgress(pool), nextEgress(pool), nextEgress(pool)];
  /** Reads a video as the clients end, until one answers; those that are not named answer. Returns the clients asked. */
  const read = (video: string, ends: Ends = {}, egress = one) => {
    clock.nowMs += 1;
    const results: ClientResult[] = [];
    for (const client of order.candidates(egress)) {
      const end = ends[client] ?? 'answered';
      if (end === 'answered') order.recordServed(newScope({}, egress), client, video, 'player');
      results.push({ client, end });
      if (end === 'answered') break;
    }
    order.learn(egress, video, results);
    return results.map(({ client }) => client);
  };
  const retired = async () => {
    const { values } = (await registry.getSingleMetric('ct_upstream_client_retired')?.get()) ?? { values: [] };
    return values.filter(({ value }) => value === 1).map(({ labels }) => labels['client']);
  };
  return { order, clock, events, read, retired, one, other, session };
}

const VISIONOS_FAILED: Ends = { VISIONOS: 'failed' };

describe('the order of clients', () => {
  it('is the configured one, with WEB at the end when there are tokens for it', () => {
    const { order, one } = clientOrder(['IOS', 'ANDROID'], 'http://127.0.0.1:4416');
    expect(order.candidates(one)).toEqual(['IOS', 'ANDROID', 'WEB']);
    expect(order.controls(one)).toEqual(['IOS', 'ANDROID']);
    expect(clientOrder(['IOS', 'ANDROID']).order.candidates(one)).toEqual(['IOS', 'ANDROID']);
  });

  it('puts a client last that fails for two videos in a row that another one brings, at this egress for an hour', () => {
    const { read, clock, events, other } = clientOrder();
    for (const video of ['a', 'b']) expect(read(video, VISIONOS_FAILED)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('c')).toEqual(['ANDROID']);
    expect(read('c', {}, other)).toEqual(['VISIONOS']);
    clock.nowMs += HOUR_MS;
    // One video an hour tries it.
    expect(read('d', VISIONOS_FAILED)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('e')).toEqual(['ANDROID']);
    clock.nowMs += HOUR_MS;
    expect([read('f'), read('g')]).toEqual([['VISIONOS'], ['VISIONOS']]);
    expect(events).toEqual([
      { event: 'youtube_client_rested', exit: 'proxy-1', client: 'VISIONOS' },
      { event: 'youtube_client_back', exit: 'proxy-1', client: 'VISIONOS' },
    ]);
  });

  it('does not change for one video that fails again and again, or for videos between others', () => {
    const { read } = clientOrder();
    for (let times = 0; times < 5; times += 1) read('odd', VISIONOS_FAILED);
    for (const video of ['a', 'b', 'c']) {
      expect(read(video)).toEqual(['VISIONOS']);
      read(`odd ${video}`, VISIONOS_FAILED);
    }
    expect(read('d')).toEqual(['VISIONOS']);
  });

  it('does not change for videos that no client brings, or only WEB, which costs a token', () => {
    const { read } = clientOrder();
    const failed: Ends = { VISIONOS: 'failed', ANDROID: 'failed', IOS: 'failed' };
    for (const video of ['a', 'b', 'c']) expect(read(video, { ...failed, WEB: 'other' })).toEqual(CLIENTS);
    for (const video of ['a', 'b', 'c']) expect(read(video, failed)).toEqual(CLIENTS);
    expect(read('d')).toEqual(['VISIONOS']);
  });

  it('has another client first, and not worse, when each fails at random', () => {
    const { read } = clientOrder();
    const random = seededRandom(1);
    const counts = Array.from({ length: 1_000 }, (_, video) => {
      const ends = Object.fromEntries(CLIENTS.map((client) => [client, random() < 0.2 ? 'failed' : 'answered']));
      return read(String(video), ends).length;
    });
    // 1.25 are expected of independent clients.
    expect(counts.reduce((sum, count) => sum + count) / counts.length).toBeLessThan(1.35);
  });

  it('does not change for clients that ended otherwise', () => {
    const { read } = clientOrder();
    for (const video of ['a', 'b', 'c']) read(video, { VISIONOS: 'other' });
    expect(read('d')).toEqual(['VISIONOS']);
  });

  it('puts a client last at once whose control was refused, and reports it once', () => {
    const { order, read, events, one, other } = clientOrder();
    for (let times = 0; times < 3; times += 1) order.rest(one, 'VISIONOS');
    expect(order.controls(one)).toEqual(['ANDROID', 'IOS', 'VISIONOS']);
    expect([read('a'), read('a', {}, other)]).toEqual([['ANDROID'], ['VISIONOS']]);
    expect(events).toEqual([{ event: 'youtube_client_rested', exit: 'proxy-1', client: 'VISIONOS' }]);
  });

  it('is that of the gateway for all of its sessions', () => {
    const { order, read, session } = clientOrder();
    order.rest(session, 'VISIONOS');
    expect(read('a', {}, { ...session })).toEqual(['ANDROID']);
  });
});

describe('a client that was served', () => {
  it('counts as served at this egress for as long as is asked', () => {
    const { order, clock, read, one, other } = clientOrder();
    expect(order.isServed(one, 'VISIONOS', HOUR_MS)).toBe(false);
    read('a');
    clock.nowMs += 60_000;
    expect(order.isServed(one, 'VISIONOS', 60_000)).toBe(true);
    expect([order.isServed(one, 'ANDROID', 60_000), order.isServed(other, 'VISIONOS', 60_000)]).toEqual([false, false]);
    clock.nowMs += 1;
    expect([60_000, HOUR_MS].map((withinMs) => order.isServed(one, 'VISIONOS', withinMs))).toEqual([false, true]);
  });
});

describe('a client whose version is not served', () => {
  it('costs a request for three videos, and then for one an hour', async () => {
    const { read, clock, events, retired, other } = clientOrder();
    const ends: Ends = { VISIONOS: 'retired' };
    for (const video of ['a', 'b', 'c']) expect(read(video, ends)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('d', ends)).toEqual(['ANDROID']);
    expect(read('d', ends, other)).toEqual(['ANDROID']);
    expect(await retired()).toEqual(['VISIONOS']);
    clock.nowMs += HOUR_MS;
    expect(read('e', ends)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('f', ends)).toEqual(['ANDROID']);
    clock.nowMs += HOUR_MS;
    expect([read('g'), read('h')]).toEqual([['VISIONOS'], ['VISIONOS']]);
    expect(await retired()).toEqual([]);
    expect(events).toEqual([
      { event: 'youtube_client_retired', client: 'VISIONOS' },
      { event: 'youtube_client_reinstated', client: 'VISIONOS' },
    ]);
  });

  it('is not concluded from one video, however often it is asked for, or from videos between others', async () => {
    const { read, retired } = clientOrder();
    for (let times = 0; times < 10; times += 1) read('odd', { VISIONOS: 'retired' });
    for (const video of ['a', 'b', 'c', 'd']) {
      read(video, { VISIONOS: 'retired' });
      read('fine');
    }
    expect(await retired()).toEqual([]);
  });

  it('is asked in turn while all are retired, until one is served', async () => {
    const { order, read, retired } = clientOrder();
    const ends: Ends = { VISIONOS: 'retired', ANDROID: 'retired', IOS: 'retired', WEB: 'retired' };
    for (const video of ['a', 'b', 'c']) expect(read(video, ends)).toHaveLength(4);
    expect(order.allRetired).toBe(true);
    const asked = ['d', 'e', 'f', 'g'].flatMap((video) => read(video, ends));
    expect(new Set(asked)).toEqual(new Set(CLIENTS));
    const [served] = read('h');
    expect(await retired()).toEqual(CLIENTS.filter((client) => client !== served));
    expect(read('i')).toEqual([served]);
  });
});

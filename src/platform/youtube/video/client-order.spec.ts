import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
import { newPool, nextEgress } from '../../../../test/youtube/egresses.js';
import { recordedEvents } from '../../../../test/youtube/recorded-events.js';
import { type ClientResult, ClientOrder } from './client-order.js';

const CLIENTS: YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS', 'WEB'];
const HOUR_MS = 3_600_000;

type Ends = Partial<Record<YoutubeClient, ClientResult['end']>>;

function clientOrder() {
  const clock = { nowMs: 0 };
  const registry = new Registry();
  const events = recordedEvents();
  class TimedOrder extends ClientOrder {
    protected override now = () => clock.nowMs;
  }
  const order = new TimedOrder(Object.assign(new Environment(), { YOUTUBE_CLIENTS: CLIENTS }), registry);
  const pool = newPool(['http://a.invalid', 'http://b.invalid', 'http://{session}.invalid']);
  const [one, other, session] = [nextEgress(pool), nextEgress(pool), nextEgress(pool)];
  /** Reads a video as the clients end, until one answers; those that are not named answer. Returns the clients asked. */
  const read = (video: string, ends: Ends = {}, egress = one) => {
    clock.nowMs += 1;
    const results: ClientResult[] = [];
    for (const client of order.candidates(egress)) {
      const end = ends[client] ?? 'answered';
      if (end === 'answered') order.recordServed(client);
      results.push({ client, end });
      if (end === 'answered' || results.filter((result) => result.end === 'refused').length === 2) break;
    }
    order.learn(egress, video, results);
    return results.map(({ client }) => client);
  };
  const retired = async () => {
    const { values } = (await registry.getSingleMetric('ct_upstream_client_retired')?.get()) ?? { values: [] };
    return values.filter(({ value }) => value === 1).map(({ labels }) => labels['client']);
  };
  return { order, clock, events, read, retired, other, session };
}

describe('the order of clients', () => {
  it('starts with the client that was served after another was refused, at this egress and for an hour', () => {
    const { read, clock, events, other } = clientOrder();
    expect(read('a', { VISIONOS: 'refused' })).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('b')).toEqual(['ANDROID']);
    expect(read('b', {}, other)).toEqual(['VISIONOS']);
    clock.nowMs += HOUR_MS;
    expect(read('c', { VISIONOS: 'refused' })).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('d')).toEqual(['ANDROID']);
    clock.nowMs += HOUR_MS;
    expect([read('e'), read('f')]).toEqual([['VISIONOS'], ['VISIONOS']]);
    expect(events).toEqual([
      { event: 'youtube_client_rested', exit: 'proxy-1', client: 'VISIONOS' },
      { event: 'youtube_client_back', exit: 'proxy-1', client: 'VISIONOS' },
    ]);
  });

  it('changes for withheld texts after three different videos in a row only', () => {
    const { read } = clientOrder();
    for (const video of ['a', 'a', 'a', 'b']) read(video, { VISIONOS: 'withheld' });
    expect(read('c')).toEqual(['VISIONOS']);
    for (const video of ['a', 'b', 'c']) expect(read(video, { VISIONOS: 'withheld' })[0]).toBe('VISIONOS');
    expect(read('d')).toEqual(['ANDROID']);
  });

  it('never starts with WEB, which costs a token', () => {
    const { read } = clientOrder();
    expect(read('a', { VISIONOS: 'refused', ANDROID: 'withheld', IOS: 'withheld' })).toEqual(CLIENTS);
    expect(read('b')).toEqual(['VISIONOS']);
  });

  it('reaches a client that is served when the first two are refused from the start', () => {
    const { read } = clientOrder();
    const ends: Ends = { VISIONOS: 'refused', ANDROID: 'refused' };
    expect(read('a', ends)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('b', ends)).toEqual(['IOS']);
  });

  it('stays when all clients of an address are refused that were served before', () => {
    const { read } = clientOrder();
    read('a');
    const ends: Ends = { VISIONOS: 'refused', ANDROID: 'refused' };
    expect(read('b', ends)).toEqual(['VISIONOS', 'ANDROID']);
    expect(read('c')).toEqual(['VISIONOS']);
  });

  it('stays when a session of a gateway is refused', () => {
    const { read, session } = clientOrder();
    const ends: Ends = { VISIONOS: 'refused', ANDROID: 'refused' };
    for (const video of ['a', 'b', 'c']) expect(read(video, ends, session)).toEqual(['VISIONOS', 'ANDROID']);
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
    expect(events.filter(({ event }) => !/_(?:rested|back)$/.test(event))).toEqual([
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

  it('counts as served for an hour after a response that shows it', () => {
    const { order, read, clock } = clientOrder();
    expect(order.isServed('VISIONOS')).toBe(false);
    read('a');
    clock.nowMs += HOUR_MS - 1;
    expect([order.isServed('VISIONOS'), order.isServed('ANDROID')]).toEqual([true, false]);
    clock.nowMs += 1;
    expect(order.isServed('VISIONOS')).toBe(false);
  });
});

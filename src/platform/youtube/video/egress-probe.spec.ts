import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { YoutubeClient } from '../../../config/environment.js';
import { CircuitBreaker } from '../egress/circuit-breaker.js';
import { EgressPool } from '../egress/egress-pool.js';
import { requestScope } from '../egress/request-scope.js';
import { ClientHealth } from './client-fallback.js';
import { RetiredClients } from './retired-clients.js';
import { VideoReader } from './video-reader.js';

const CLIENTS: YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS'];
const context = { signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} };

/** A list of tracks whose only text requires a PO token. */
const WITHHELD = {
  kind: 'tracks',
  tracks: [{ baseUrl: '', needsToken: true, track: { languageCode: 'en', name: 'English', generated: false } }],
  defaults: { defaultTrack: null, audioLanguage: null },
};

/** A reader whose player requests some clients get a bot check or captions without a text for, and the others a final response. */
function readerRefusing(refused: readonly YoutubeClient[], withheld: readonly YoutubeClient[] = []) {
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const requested: YoutubeClient[] = [];
  const query = ({ client }: { client: YoutubeClient }) => {
    requested.push(client);
    const final = withheld.includes(client) ? WITHHELD : { kind: 'private' };
    const reading = { details: {}, ...(refused.includes(client) ? { kind: 'bot-check' } : final) };
    return Promise.resolve({ kind: 'parsed', value: { reading, visitor: {} } });
  };
  const collaborators = [
    { query, replaceVisitorData: () => false },
    new ClientHealth(CLIENTS, undefined, now),
    new RetiredClients(CLIENTS, new Registry(), () => undefined, now),
    { use: 'off' },
    { notice: () => undefined },
  ] as unknown as ConstructorParameters<typeof VideoReader>;
  const reader = new VideoReader(...collaborators);
  const options = { proxyUrls: [], connectionsMax: 1, connectTimeoutMs: 1, registry: new Registry() };
  const egress = new EgressPool(options).take('video')?.egress;
  if (!egress) throw new Error('no egress');
  const breaker = new CircuitBreaker(now);
  const read = async (video: string) => {
    const admission = breaker.admit();
    if (!admission) throw new Error('The egress is blocked.');
    const { verdict } = await reader.read(video, [], requestScope(egress, admission, context, 0));
    if (verdict === 'answered') admission.succeeded();
    else admission.blocked(video);
    return requested.splice(0);
  };
  const serve = async (count: number) => {
    for (let video = 0; video < count; video += 1) {
      const admission = breaker.admit();
      if (!admission) throw new Error('The egress is blocked.');
      await egress.pacer?.waitForTurn('player', context, admission);
      egress.pacer?.learn('player', { kind: 'json', value: {}, whole: false }, admission);
      egress.pacer?.recordServed();
    }
  };
  const servedMany = () => egress.pacer?.answeredMany('player');
  return { read, serve, servedMany, breaker, clock };
}

const block = { address: true, retryAfterSeconds: null, by: null };

describe('a probe of a blocked egress', () => {
  it('tries a client that is refused everywhere after the others', async () => {
    const { read, breaker, clock } = readerRefusing(['VISIONOS']);
    for (const video of ['a', 'b', 'c', 'd', 'e']) expect(await read(video)).toEqual(['VISIONOS', 'ANDROID']);
    breaker.refuse(block);
    clock.nowMs += 330_000;
    expect(await read('f')).toEqual(['ANDROID']);
    expect(breaker.open).toBe(false);
    // The probe of the client was not used up.
    expect(await read('g')).toEqual(['VISIONOS', 'ANDROID']);
  });

  it('tries a second client after a refusal, and no third', async () => {
    const { read, breaker, clock } = readerRefusing(['VISIONOS', 'ANDROID']);
    breaker.refuse(block);
    clock.nowMs += 330_000;
    expect(await read('a')).toEqual(['VISIONOS', 'ANDROID']);
    expect(breaker.open).toBe(true);
  });

  it('reaches a client that is served, when all cool down and the first two are always refused', async () => {
    const refused: YoutubeClient[] = [...CLIENTS];
    const { read, breaker, clock } = readerRefusing(refused);
    for (const video of ['a', 'b', 'c', 'd', 'e']) await read(video);
    refused.pop();
    clock.nowMs += 30_000;
    expect(await read('f')).toEqual(['VISIONOS', 'ANDROID']);
    clock.nowMs += 60_000;
    expect((await read('g'))[0]).toBe('IOS');
    expect(breaker.open).toBe(false);
  });
});

describe('bot checks through an egress', () => {
  it('end an attempt after two clients when many requests were served, and else after all', async () => {
    const { read, serve } = readerRefusing(['VISIONOS', 'ANDROID', 'IOS']);
    expect(await read('a')).toEqual(CLIENTS);
    await serve(50);
    expect(await read('b')).toEqual(['VISIONOS', 'ANDROID']);
  });

  it('of clients that are only probed do not keep an attempt from one that is served', async () => {
    const { read, serve, clock } = readerRefusing(['VISIONOS', 'ANDROID']);
    for (const video of ['a', 'b', 'c', 'd', 'e']) await read(video);
    await serve(50);
    clock.nowMs += 30_000;
    expect(await read('f')).toEqual(CLIENTS);
  });

  it('are not counted as served, although the responses are complete and the attempt is answered', async () => {
    const { read, serve, servedMany } = readerRefusing(['VISIONOS']);
    await serve(48);
    expect(await read('a')).toEqual(['VISIONOS', 'ANDROID']);
    expect(servedMany()).toBe(false);
    await read('b');
    expect(servedMany()).toBe(true);
  });

  it('leave counted what was served in the same attempt', async () => {
    const { read, serve, servedMany } = readerRefusing(['ANDROID', 'IOS'], ['VISIONOS']);
    await serve(49);
    expect(await read('a')).toEqual(CLIENTS);
    expect(servedMany()).toBe(true);
  });
});

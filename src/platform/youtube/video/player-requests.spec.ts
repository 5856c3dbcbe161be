import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { newContext, newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { Failed, listing, newReader, type StubbedPlatform } from '../../../../test/youtube/stubbed-clients.js';
import type { YoutubeClient } from '../../../config/environment.js';
import type { ControlEnd } from '../egress/egress.js';
import type { UpstreamResponse } from '../egress/upstream-response.js';

Logger.overrideLogger(false);

const VIDEO = 'aaaaaaaaaaa';
/** The constant control videos. */
const [FIRST, SECOND] = ['jNQXAC9IVRw', '9bZkp7q19f0'];
const ERROR = { playabilityStatus: { status: 'ERROR', reason: 'Video unavailable' } };
const FORBIDDEN = { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: 60 } as const;

/** The control through one egress of a platform that answers so. */
function newControlOf(platform: StubbedPlatform = {}) {
  const { experiment, order, asked } = newReader(platform, {
    YOUTUBE_CLIENTS: ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'],
  });
  const egress = nextEgress();
  const probe = (kind: 'player' | 'captions' | null = 'player') => experiment.probe(egress, kind);
  const settle = (client: YoutubeClient | null, sinceMs = performance.now()) => {
    const doubt = { kind: 'player', client, sinceMs } as const;
    return experiment.settle(doubt, client ?? 'VISIONOS', newScope(newContext(), egress, VIDEO));
  };
  return { order, asked, egress, line: egress.uses.video.line, probe, settle };
}

describe('the control at the end of a pause', () => {
  it('is asked each time with another client and video, never with WEB', async () => {
    const { probe, asked } = newControlOf();
    for (let times = 0; times < 6; times += 1) expect(await probe()).toBe('served');
    expect(asked).toEqual([
      `VISIONOS ${FIRST}`,
      `ANDROID ${SECOND}`,
      `IOS ${FIRST}`,
      `ANDROID_REEL ${SECOND}`,
      `ANDROID_VR ${FIRST}`,
      `VISIONOS ${SECOND}`,
    ]);
  });

  it.each<[string, unknown, ControlEnd]>([
    ['tracks', listing(FIRST, 'en'), 'served'],
    ['a 403', new Failed(FORBIDDEN), 'refused'],
    ['"unavailable", in whatever words', ERROR, 'refused'],
    ['a player without captions', listing(FIRST), 'refused'],
    ['an error that rejects its version', new Failed({ kind: 'http-error', status: 400, media: 'json' }), 'unknown'],
    ['a video that tells to update the app', listing('aQvGIIdgFDM', 'en'), 'unknown'],
    ['an error of the platform', new Failed({ kind: 'http-error', status: 500, media: 'json' }), 'unknown'],
    ['an unreadable response', new Failed({ kind: 'unreadable', expected: 'whole JSON' }), 'unknown'],
    ['no response', new Failed({ kind: 'network', cause: new Error('reset') }), 'unreached'],
    ['no response in time', new Failed({ kind: 'timeout' }), 'unreached'],
    ['a page of another server', new Failed({ kind: 'foreign-page' }), 'unreached'],
  ])('that gets %s is so: %#', async (_, answer, end) => {
    const { probe } = newControlOf({ player: () => answer });
    expect(await probe(null)).toBe(end);
  });

  it('is the next video of a caller when WEB is the only client', async () => {
    const { experiment, asked } = newReader({}, { YOUTUBE_CLIENTS: ['WEB'] });
    expect([await experiment.probe(nextEgress(), 'player'), asked]).toEqual(['served', []]);
  });

  it('that takes too long was not reached', async () => {
    const player = () => {
      throw new Error('aborted');
    };
    expect(await newControlOf({ player }).probe()).toBe('unreached');
  });

  it.each<[string, UpstreamResponse, ControlEnd]>([
    ['a 403', FORBIDDEN, 'refused'],
    ['an empty text', { kind: 'ok', media: 'empty', body: '' }, 'refused'],
    ['no response', { kind: 'timeout' }, 'unreached'],
    ['an error', { kind: 'http-error', status: 500, media: 'json' }, 'unknown'],
  ])('reads a text when captions are refused, and not otherwise: %s', async (_, text, end) => {
    const { probe } = newControlOf({ text: () => text });
    expect([await probe('captions'), await probe('player')]).toEqual([end, 'served']);
  });

  it('shows that its client is served, but neither widens the start nor becomes a control video itself', async () => {
    const { probe, order, egress, line, asked } = newControlOf();
    const answered: string[] = [];
    line.answered = (kind) => void answered.push(kind);
    const sinceMs = performance.now();
    await probe();
    expect(egress.uses.video.isServed({ kind: 'player', client: 'VISIONOS', sinceMs })).toBe(true);
    expect([order.isServed(egress, 'VISIONOS', 60_000), answered]).toEqual([true, []]);
    await probe();
    expect(asked.at(-1)).toBe(`ANDROID ${SECOND}`);
  });
});

describe('the control that settles a doubt', () => {
  it('is one for all who doubt at a time', async () => {
    const { settle, asked } = newControlOf();
    const sinceMs = performance.now();
    const settled = [1, 2, 3].map(() => settle(null, sinceMs));
    expect(await Promise.all(settled)).toEqual(['served', 'served', 'served']);
    expect(asked).toEqual([`VISIONOS ${FIRST}`]);
  });

  it('is the video whose text this egress served last to this client, else the process, and the doubted one never', async () => {
    const { order, settle, asked, egress } = newControlOf();
    const other = nextEgress();
    order.recordServed(newScope({}, other), 'VISIONOS', 'elsewhere__', 'captions');
    // Its text may need a token.
    order.recordServed(newScope({}, other), 'VISIONOS', 'only-listed', 'player');
    await settle('VISIONOS');
    order.recordServed(newScope({}, egress), 'VISIONOS', 'here_______', 'captions');
    order.recordServed(newScope({}, egress), 'VISIONOS', VIDEO, 'captions');
    await settle('VISIONOS');
    expect(asked).toEqual(['VISIONOS elsewhere__', 'VISIONOS here_______']);
  });

  it.each<[string, YoutubeClient[], string, string | null]>([
    ['no client', [], 'served', null],
    ['this client', ['VISIONOS', 'ANDROID_VR'], 'client-refused', null],
    ['clients of two apps', ['VISIONOS', 'ANDROID'], 'address-refused', 'player'],
  ])('finds out that %s is refused', async (_, refused, finding, pausedKind) => {
    const { settle, line, order, egress } = newControlOf({
      player: (client) => (refused.includes(client) ? ERROR : undefined),
    });
    expect(await settle('VISIONOS')).toBe(finding);
    expect(line.refusedKind).toBe(pausedKind);
    const isRested = order.controls(egress).at(-1) === 'VISIONOS';
    expect(isRested).toBe(finding === 'client-refused');
  });

  it('pauses the address for as long as the platform says', async () => {
    const { settle, line } = newControlOf({ player: () => new Failed(FORBIDDEN) });
    expect(await settle('VISIONOS')).toBe('address-refused');
    expect(line.pauseRemainingMs).toBeGreaterThan(55_000);
  });

  it('is followed by one with a client that was not refused, after which those that were rest', async () => {
    const { settle, probe, asked, order, egress, line } = newControlOf({
      player: (client) => (['VISIONOS', 'ANDROID', 'ANDROID_REEL'].includes(client) ? ERROR : undefined),
    });
    for (const client of ['IOS', 'ANDROID_REEL']) egress.uses.video.doubt('player', VIDEO, client);
    expect(await settle('VISIONOS')).toBe('address-refused');
    expect(await probe()).toBe('served');
    line.resume();
    expect(asked).toEqual([`VISIONOS ${FIRST}`, `ANDROID ${SECOND}`, `IOS ${FIRST}`]);
    expect(order.candidates(egress)).toEqual(['IOS', 'ANDROID_REEL', 'ANDROID_VR', 'VISIONOS', 'ANDROID']);
  });

  it('is followed by one with each client in turn while all are refused, none of which rests before one is served', async () => {
    const refused = new Set<YoutubeClient>(['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR']);
    const { settle, probe, asked, order, egress } = newControlOf({
      player: (client) => (refused.has(client) ? ERROR : undefined),
    });
    await settle('VISIONOS');
    for (let times = 0; times < 5; times += 1) expect(await probe()).toBe('refused');
    expect(new Set(asked.map((request) => request.split(' ')[0]))).toEqual(refused);
    expect(order.controls(egress)).toEqual([...refused]);
    refused.clear();
    expect(await probe()).toBe('served');
    expect(order.candidates(egress).at(0)).toBe(asked.at(-1)?.split(' ')[0]);
  });

  it('lets no client rest that was refused in a pause for certain, or whose text is not what is asked for', async () => {
    let isRefused = true;
    const { probe, settle, order, egress } = newControlOf({ player: () => (isRefused ? ERROR : undefined) });
    const before = order.controls(egress);
    expect(await probe()).toBe('refused');
    isRefused = false;
    expect([await probe(), order.controls(egress)]).toEqual(['served', before]);
    isRefused = true;
    expect(await settle('VISIONOS')).toBe('address-refused');
    isRefused = false;
    expect([await probe(null), order.controls(egress)]).toEqual(['served', before]);
  });

  it('asks one client of each other app, the undoubted first, until one is served or refused', async () => {
    const retired = new Failed({ kind: 'http-error', status: 400, media: 'json' });
    const { settle, asked, order, egress } = newControlOf({
      player: (client) => ({ VISIONOS: ERROR, IOS: retired })[String(client)],
    });
    for (const client of ['ANDROID', 'ANDROID_REEL']) egress.uses.video.doubt('player', VIDEO, client);
    expect(await settle('VISIONOS')).toBe('client-refused');
    expect(asked).toEqual([`VISIONOS ${FIRST}`, `IOS ${SECOND}`, `ANDROID ${SECOND}`]);
    expect(order.controls(egress).at(-1)).toBe('VISIONOS');
  });

  it('shows nothing when the versions of all other apps are retired', async () => {
    const retired = new Failed({ kind: 'http-error', status: 400, media: 'json' });
    const { settle, asked, line } = newControlOf({ player: (client) => (client === 'VISIONOS' ? ERROR : retired) });
    expect(await settle('VISIONOS')).toBe('unknown');
    expect([asked.length, line.paused]).toEqual([3, false]);
  });

  it('shows nothing when the second one cannot be asked', async () => {
    const { settle, line } = newControlOf({
      player: (client) => (client === 'VISIONOS' ? ERROR : new Failed({ kind: 'timeout' })),
    });
    expect(await settle('VISIONOS')).toBe('unknown');
    expect(line.paused).toBe(false);
  });
});

import { describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { newPool, newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { Failed, listing, newReader, type StubbedPlatform } from '../../../../test/youtube/stubbed-clients.js';
import type { Environment, YoutubeClient } from '../../../config/environment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { UpstreamResponse } from '../egress/upstream-response.js';

Logger.overrideLogger(false);

const VIDEO = 'aaaaaaaaaaa';
const OTHER = 'bbbbbbbbbbb';
/** The constant control videos. */
const [FIRST, SECOND] = ['jNQXAC9IVRw', '9bZkp7q19f0'];
const CLIENTS: readonly YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'];

const WITHOUT_CAPTIONS = { playabilityStatus: { status: 'OK' }, videoDetails: { videoId: VIDEO, lengthSeconds: '60' } };
const ERROR = { playabilityStatus: { status: 'ERROR', reason: 'Video unavailable' } };
const UNPLAYABLE = { playabilityStatus: { status: 'UNPLAYABLE', reason: 'This video is unavailable' } };
const BOT_CHECK = { playabilityStatus: { status: 'LOGIN_REQUIRED', reason: 'Sign in to confirm you’re not a bot' } };
const FORBIDDEN = new Failed({ kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null });
const BROKEN = new Failed({ kind: 'http-error', status: 500, media: 'json' });

const RESTRICTED = {
  playabilityStatus: {
    status: 'ERROR',
    reason: 'This video is restricted. Please check the network administrator restrictions.',
  },
};

/** What all or some of the clients answer about the video, and about no other. */
const about =
  (answer: unknown, ...clients: YoutubeClient[]) =>
  (client: YoutubeClient, videoId: string) =>
    videoId === VIDEO && (clients.length === 0 || clients.includes(client)) ? answer : undefined;

/** Reads videos through one egress of a platform that answers so. */
function reading(platform: StubbedPlatform, settings: Partial<Environment> = {}, egress = nextEgress()) {
  const given = newReader(platform, { YOUTUBE_CLIENTS: [...CLIENTS], ...settings });
  const attempt = async (videoId = VIDEO, languages: readonly string[] = [], scope: Partial<RequestScope> = {}) => {
    given.asked.length = 0;
    return given.reader.read(videoId, languages, { ...newScope({}, egress, videoId), ...scope });
  };
  const read = async (videoId = VIDEO, languages: readonly string[] = []) => (await attempt(videoId, languages)).result;
  return { ...given, egress, line: egress.uses.video.line, platform, attempt, read };
}

describe('a video of which one client listed tracks whose text was not served', () => {
  const failures: [string, UpstreamResponse, string][] = [
    ['timed out', { kind: 'timeout' }, 'upstream_timeout'],
    ['was a 500', { kind: 'http-error', status: 500, media: 'html' }, 'upstream_failure'],
    ['was unreadable', { kind: 'ok', media: 'other', body: 'Hello' }, 'upstream_failure'],
    ['was not reached', { kind: 'network', cause: new Error('reset') }, 'upstream_failure'],
  ];
  const others: [string, unknown, readonly string[]][] = [
    ['ERROR', ERROR, []],
    ['UNPLAYABLE', UNPLAYABLE, []],
    ['no captions', WITHOUT_CAPTIONS, []],
    ['other languages', listing(VIDEO, 'de'), ['en']],
  ];
  const cases = failures.flatMap(([failure, captions, code]) =>
    others.map(([report, other, languages]) => ({ failure, captions, code, report, other, languages })),
  );

  it.each(cases)('that $failure: $code, also when the others report $report', async (given) => {
    const { captions, code, other, languages } = given;
    const { read } = reading({
      player: (client, videoId) => about(client === 'VISIONOS' ? listing(VIDEO, 'en', 'de') : other)(client, videoId),
      text: (_client, videoId) => (videoId === VIDEO ? captions : undefined),
    });
    expect(await read(VIDEO, languages)).toMatchObject({ ok: false, failure: { code } });
  });
});

describe('a video that is refused', () => {
  it.each<[string, unknown]>([
    ['a bot check', BOT_CHECK],
    ['a 403', FORBIDDEN],
    ['a response about another video', listing(OTHER, 'en')],
    ['an unknown status', { playabilityStatus: { status: 'NEW_STATUS', reason: 'Something new' } }],
  ])('with %s by one client is read with a client of another app, without a control', async (_, answer) => {
    const { read, asked, line } = reading({ player: about(answer, 'VISIONOS', 'ANDROID_VR') });
    expect(await read()).toMatchObject({ ok: true });
    expect([asked, line.paused]).toEqual([[`VISIONOS ${VIDEO}`, `ANDROID ${VIDEO}`], false]);
  });

  it('with a text of one client is read with another one', async () => {
    const { read, asked, line } = reading({
      text: (client) => (client === 'VISIONOS' ? FORBIDDEN.response : undefined),
    });
    expect(await read()).toMatchObject({ ok: true });
    expect([asked, line.paused]).toEqual([[`VISIONOS ${VIDEO}`, `ANDROID ${VIDEO}`], false]);
  });

  it('by two apps while a control is served ends with its own code, is remembered, and affects nobody else', async () => {
    const { attempt, read, reader, asked, line, order, egress } = reading({ player: about(BOT_CHECK) });
    const { result, end } = await attempt();
    expect(result).toMatchObject({ ok: false, failure: { code: 'upstream_blocked' } });
    expect(result).not.toHaveProperty('failure.retryAfterSeconds');
    expect(end).toBe('answered');
    expect(asked.slice(0, 3)).toEqual([`VISIONOS ${VIDEO}`, `ANDROID ${VIDEO}`, `VISIONOS ${FIRST}`]);
    expect(asked.filter((request) => !request.endsWith(VIDEO))).toHaveLength(1);
    expect(reader.remembered(VIDEO, [])).toBe(result);
    expect([reader.remembered(OTHER, []), reader.remembered(VIDEO, ['en'])]).toEqual([undefined, undefined]);
    expect([line.paused, line.held, order.candidates(egress)]).toEqual([false, false, CLIENTS]);
    expect(await read(OTHER)).toMatchObject({ ok: true });
    expect(asked).toEqual([`VISIONOS ${OTHER}`]);
  });

  it('is examined with a video that was served before, and not with itself', async () => {
    const { platform, read, asked } = reading({});
    for (const videoId of [OTHER, VIDEO]) expect(await read(videoId)).toMatchObject({ ok: true });
    platform.player = about(BOT_CHECK);
    await read();
    expect(asked.filter((request) => !request.endsWith(VIDEO))).toEqual([`VISIONOS ${OTHER}`]);
  });

  it('by a client whose control is refused while that of another is served lets that client rest', async () => {
    const { read, asked, line, order, egress } = reading({
      player: (client, videoId) => (client === 'VISIONOS' ? BOT_CHECK : about(BOT_CHECK)(client, videoId)),
    });
    expect(await read()).toMatchObject({ failure: { code: 'upstream_blocked' } });
    const controls = asked.filter((request) => !request.endsWith(VIDEO));
    // Not with ANDROID, which is doubted itself.
    expect(controls).toEqual([`VISIONOS ${FIRST}`, `IOS ${SECOND}`]);
    expect([line.paused, order.candidates(egress).at(-1)]).toEqual([false, 'VISIONOS']);
    expect(await read(OTHER)).toMatchObject({ ok: true });
    expect(asked).toEqual([`ANDROID ${OTHER}`]);
  });

  it.each<[string, unknown]>([
    ['a bot check', BOT_CHECK],
    ['a 403', FORBIDDEN],
  ])('with %s as every control is shows a refused address, after four requests', async (_, answer) => {
    const { attempt, reader, asked, line } = reading({ player: () => answer });
    const { result, end } = await attempt();
    expect([result, end]).toMatchObject([{ failure: { code: 'upstream_blocked' } }, 'refused']);
    expect(asked).toEqual([`VISIONOS ${VIDEO}`, `ANDROID ${VIDEO}`, `VISIONOS ${FIRST}`, `IOS ${SECOND}`]);
    expect([line.refusedKind, reader.remembered(VIDEO, [])]).toEqual(['player', undefined]);
  });

  it('with all texts shows an address that is refused for captions', async () => {
    const refused: UpstreamResponse = { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: 90 };
    const { attempt, line, asked } = reading({ text: () => refused });
    expect(await attempt()).toMatchObject({
      end: 'refused',
      result: { failure: { code: 'upstream_blocked', retryAfterSeconds: 90 } },
    });
    expect([line.refusedKind, asked.length]).toEqual(['captions', 4]);
    expect(line.pauseRemainingMs).toBeGreaterThan(80_000);
  });

  it('for certain needs no other client and no control', async () => {
    const response = { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 7 } as const;
    const { attempt, asked } = reading({ player: () => new Failed(response) });
    expect(await attempt()).toMatchObject({
      end: 'refused',
      result: { failure: { code: 'upstream_blocked', retryAfterSeconds: 7 } },
    });
    expect(asked).toHaveLength(1);
  });

  it('through sessions of a gateway is read through others, and examined when several refuse it', async () => {
    const pool = newPool(['http://{session}.invalid']);
    const { attempt, asked, line } = reading({ player: () => BOT_CHECK }, {}, nextEgress(pool));
    for (const attempts of [1, 2]) {
      expect(await attempt(VIDEO, [], { egress: nextEgress(pool), attempts })).toMatchObject({ end: 'refused' });
      expect(asked).toHaveLength(2);
    }
    expect(await attempt(VIDEO, [], { egress: nextEgress(pool), attempts: 3 })).toMatchObject({ end: 'refused' });
    expect([asked.length, line.paused]).toEqual([4, false]);
    await pool.close();
  });

  it('is remembered for ten minutes', async () => {
    const { read, reader } = reading({ player: about(BOT_CHECK) });
    const nowMs = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(nowMs);
    await read();
    clock.mockReturnValue(nowMs + 599_999);
    expect(reader.remembered(VIDEO, [])).toBeDefined();
    clock.mockReturnValue(nowMs + 600_001);
    expect(reader.remembered(VIDEO, [])).toBeUndefined();
    clock.mockRestore();
  });

  it('is not remembered for a failure that may pass, whatever other clients say', async () => {
    const { read, reader } = reading({
      player: about(ERROR, 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'),
      text: (_client, videoId) => (videoId === VIDEO ? { kind: 'timeout' } : undefined),
    });
    expect(await read()).toMatchObject({ failure: { code: 'upstream_timeout' } });
    expect(reader.remembered(VIDEO, [])).toBeUndefined();
  });

  it('by the network is blocked, asked for again, and affects nobody else', async () => {
    const { attempt, reader, read, line, platform } = reading({ player: about(RESTRICTED) });
    const { result, end } = await attempt();
    // Another egress may not be restricted.
    expect([result, end]).toMatchObject([{ failure: { code: 'upstream_blocked' } }, 'refused']);
    expect([line.paused, line.held, reader.remembered(VIDEO, [])]).toEqual([false, false, undefined]);
    expect(await read(OTHER)).toMatchObject({ ok: true });
    platform.player = () => undefined;
    expect(await read()).toMatchObject({ ok: true });
  });

  it('by the network like every other one shows a refused address', async () => {
    const { attempt, asked, line } = reading({ player: () => RESTRICTED });
    expect(await attempt()).toMatchObject({ end: 'refused', result: { failure: { code: 'upstream_blocked' } } });
    expect([asked.length, line.refusedKind]).toEqual([4, 'player']);
  });

  it('is remembered for a status that is unknown to all clients', async () => {
    const { read, reader } = reading({ player: about({ playabilityStatus: { status: 'NEW_STATUS' } }) });
    expect(await read()).toMatchObject({ failure: { code: 'upstream_failure' } });
    expect(reader.remembered(VIDEO, [])).toBeDefined();
  });
});

describe('a video that is unavailable according to its clients', () => {
  it('is unavailable when the reel agrees with another app and the address was served after', async () => {
    const { attempt, asked } = reading({ player: about(ERROR) });
    const { result, end } = await attempt();
    expect([result, end]).toMatchObject([{ failure: { code: 'video_unavailable' } }, 'answered']);
    expect(result).not.toHaveProperty('confirmed');
    expect(asked).toEqual([`VISIONOS ${VIDEO}`, `ANDROID_REEL ${VIDEO}`, `ANDROID_REEL ${FIRST}`]);
  });

  it('needs no control of a client whose version any egress was served within the hour, only of the address', async () => {
    const { attempt, asked } = reading({ player: about(ERROR) });
    const nowMs = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(nowMs);
    await attempt();
    const controlAfter = async (ms: number) => {
      clock.mockReturnValue(nowMs + ms);
      const { result } = await attempt(VIDEO, [], newScope({}, nextEgress()));
      expect(result).toMatchObject({ failure: { code: 'video_unavailable' } });
      expect(asked.slice(0, 2)).toEqual([`VISIONOS ${VIDEO}`, `ANDROID_REEL ${VIDEO}`]);
      return asked.slice(2);
    };
    expect(await controlAfter(3_600_000)).toEqual([`VISIONOS ${FIRST}`]);
    expect(await controlAfter(3_600_001)).toEqual([`ANDROID_REEL ${FIRST}`]);
    clock.mockRestore();
  });

  it('is not unavailable when the address gets these words for every video: four requests, and the address pauses', async () => {
    const { attempt, asked, line } = reading({ player: () => ERROR });
    expect(await attempt()).toMatchObject({ end: 'refused', result: { failure: { code: 'upstream_blocked' } } });
    expect([asked.length, line.refusedKind]).toEqual([4, 'player']);
  });

  it.each<[string, unknown]>([
    ['ERROR', ERROR],
    ['UNPLAYABLE', UNPLAYABLE],
  ])('is read by the reel whatever the others say: %s', async (_, answer) => {
    const { read, asked } = reading({ player: about(answer, 'VISIONOS', 'ANDROID', 'IOS', 'ANDROID_VR') });
    expect(await read()).toMatchObject({ ok: true });
    expect(asked).toEqual([`VISIONOS ${VIDEO}`, `ANDROID_REEL ${VIDEO}`]);
  });

  it('is judged by another client that plays videos made for kids when the reel itself is refused', async () => {
    const { read, asked, order, egress } = reading({
      player: (client, videoId) => (client === 'ANDROID_REEL' ? ERROR : about(ERROR)(client, videoId)),
    });
    expect(await read()).toMatchObject({ failure: { code: 'video_unavailable' } });
    expect(asked.slice(0, 5)).toEqual([
      `VISIONOS ${VIDEO}`,
      `ANDROID_REEL ${VIDEO}`,
      `ANDROID_REEL ${FIRST}`,
      `IOS ${SECOND}`,
      `ANDROID ${VIDEO}`,
    ]);
    expect(order.candidates(egress).at(-1)).toBe('ANDROID_REEL');
  });

  it('is a failure while no control can be asked', async () => {
    const { attempt, line, asked } = reading({ player: (client, videoId) => about(ERROR)(client, videoId) ?? BROKEN });
    expect(await attempt()).toMatchObject({ result: { failure: { code: 'upstream_failure' } } });
    expect([line.paused, asked.filter((request) => request.endsWith(VIDEO)).length]).toEqual([false, 5]);
    // One for the reel, and one when all clients were asked.
    expect(asked).toHaveLength(7);
  });
});

describe('a fact about a video', () => {
  const PRIVATE = {
    playabilityStatus: { status: 'LOGIN_REQUIRED', reason: 'This video is private.' },
    videoDetails: { videoId: VIDEO, isPrivate: true },
  };

  it.each<[string, unknown, string, readonly YoutubeClient[]]>([
    ['no captions of two apps', WITHOUT_CAPTIONS, 'transcript_unavailable', ['VISIONOS', 'ANDROID']],
    ['private', PRIVATE, 'video_private', ['VISIONOS']],
  ])(
    '(%s) is final from a client that was served within the last minute, or whose control is',
    async (_, answer, code, clients) => {
      const { read, asked, egress, order } = reading({ player: about(answer) });
      const requests = clients.map((client) => `${client} ${VIDEO}`);
      const first = await read();
      expect(first).toMatchObject({ failure: { code } });
      expect(first).not.toHaveProperty('confirmed');
      expect(asked).toEqual([...requests, `VISIONOS ${FIRST}`]);
      expect(order.isServed(egress, 'VISIONOS', 60_000)).toBe(true);
      expect(await read()).toMatchObject({ failure: { code } });
      expect(asked).toEqual(requests);
    },
  );

  it('(no captions) is none from one app, also within a minute after it was served: another one lists them', async () => {
    const { read, asked, platform } = reading({});
    expect(await read(OTHER)).toMatchObject({ ok: true });
    platform.player = (client, videoId) =>
      client === 'VISIONOS' || client === 'ANDROID_VR'
        ? { ...WITHOUT_CAPTIONS, videoDetails: { videoId, lengthSeconds: '60' } }
        : undefined;
    for (const videoId of ['ccccccccccc', 'ddddddddddd']) {
      expect(await read(videoId)).toMatchObject({ ok: true });
      expect(asked).toEqual([`VISIONOS ${videoId}`, `ANDROID ${videoId}`]);
    }
    // After two of them the client comes last.
    expect(await read('eeeeeeeeeee')).toMatchObject({ ok: true });
    expect(asked).toEqual(['ANDROID eeeeeeeeeee']);
  });

  it('(no captions) is not certain when no other app can be asked', async () => {
    const { read } = reading({ player: about(WITHOUT_CAPTIONS) }, { YOUTUBE_CLIENTS: ['VISIONOS', 'ANDROID_VR'] });
    expect(await read()).toMatchObject({ failure: { code: 'transcript_unavailable' }, confirmed: false });
  });

  it('(a country) is that of the egress: another one is tried, and the message names it', async () => {
    const restricted = {
      playabilityStatus: {
        status: 'UNPLAYABLE',
        reason: 'The uploader has not made this video available in your country',
      },
      videoDetails: { videoId: VIDEO },
    };
    const { attempt, asked, reader } = reading({
      player: about(restricted),
      visitorData: 'CgtXYzEyMzQ1Njc4OSi4yIjKBjIKCgJGUhIEEgAgDA%3D%3D',
    });
    const { result, end } = await attempt();
    const message = 'This video is not available in the country from which this service reads YouTube (FR).';
    expect([result, end]).toMatchObject([{ failure: { code: 'video_unavailable', message } }, 'restricted']);
    expect(result).not.toHaveProperty('confirmed');
    expect(asked).toEqual([`VISIONOS ${VIDEO}`, `VISIONOS ${FIRST}`]);
    expect(await attempt(VIDEO, [], { hasAlternative: true })).toMatchObject({ result: { confirmed: false } });
    expect(reader.remembered(VIDEO, [])).toBeUndefined();
  });

  it('is none from a client that is refused', async () => {
    const { read, asked } = reading({
      player: (client, videoId) =>
        client === 'VISIONOS' ? (about(WITHOUT_CAPTIONS)(client, videoId) ?? BOT_CHECK) : undefined,
    });
    expect(await read()).toMatchObject({ ok: true });
    expect(asked.at(-1)).toBe(`ANDROID ${VIDEO}`);
  });

  it('is a block when the address is refused', async () => {
    const { attempt, line } = reading({
      player: (client, videoId) => about(WITHOUT_CAPTIONS)(client, videoId) ?? BOT_CHECK,
    });
    expect(await attempt()).toMatchObject({ end: 'refused', result: { failure: { code: 'upstream_blocked' } } });
    expect(line.paused).toBe(true);
  });

  it('is not certain for "no captions" of an app while WEB, which may list more, has no token', async () => {
    const { read, asked } = reading({ player: about(WITHOUT_CAPTIONS) }, { PO_TOKEN_URL: 'http://127.0.0.1:4416' });
    expect(await read()).toMatchObject({ failure: { code: 'transcript_unavailable' }, confirmed: false });
    expect(asked).toEqual([`VISIONOS ${VIDEO}`, `ANDROID ${VIDEO}`, `IOS ${VIDEO}`]);
  });
});

describe('a client that fails for every video which another one brings', () => {
  it.each<[string, unknown]>([
    ['no response in time', new Failed({ kind: 'timeout' })],
    ['a broken connection', new Failed({ kind: 'network', cause: new Error('reset') })],
    ['a 500', BROKEN],
    ['an unreadable response', new Failed({ kind: 'unreadable', expected: 'whole JSON' })],
    ['an unknown status', { playabilityStatus: { status: 'NEW_STATUS' } }],
    ['a restriction', RESTRICTED],
  ])('with %s is asked last after two of them', async (_, answer) => {
    const { read, asked } = reading({ player: (client) => (client === 'VISIONOS' ? answer : undefined) });
    for (const videoId of [VIDEO, OTHER]) {
      expect(await read(videoId)).toMatchObject({ ok: true });
      expect(asked[0]).toBe(`VISIONOS ${videoId}`);
    }
    expect(await read('ccccccccccc')).toMatchObject({ ok: true });
    expect(asked).toEqual(['ANDROID ccccccccccc']);
  });

  it('is not one whose word may be about the video', async () => {
    const { read, asked } = reading({ player: (client) => (client === 'VISIONOS' ? UNPLAYABLE : undefined) });
    for (const videoId of [VIDEO, OTHER, 'ccccccccccc']) {
      expect(await read(videoId)).toMatchObject({ ok: true });
      expect(asked[0]).toBe(`VISIONOS ${videoId}`);
    }
  });
});

describe('an egress through which no response of the platform arrives', () => {
  const unreached = new Failed({ kind: 'network', cause: new Error('reset') });

  it('is left after one request when another one can be tried', async () => {
    const { attempt, asked } = reading({ player: () => unreached });
    expect(await attempt(VIDEO, [], { hasAlternative: true })).toMatchObject({ end: 'unreached' });
    expect(asked).toHaveLength(1);
  });

  it('is reported as such when there is no other', async () => {
    const { attempt, asked } = reading({ player: () => unreached });
    expect(await attempt()).toMatchObject({
      end: 'unreached',
      result: {
        failure: { code: 'upstream_failure', message: expect.stringMatching(/^YouTube could not be reached/) },
      },
    });
    expect(asked).toHaveLength(CLIENTS.length);
  });
});

it('a busy egress ends the attempt, with the seconds after which it can serve', async () => {
  const { attempt, asked } = reading({ player: () => new Failed({ kind: 'busy', retryAfterSeconds: 12 }) });
  expect(await attempt()).toMatchObject({
    end: 'busy',
    result: { failure: { code: 'upstream_busy', retryAfterSeconds: 12 } },
  });
  expect(asked).toHaveLength(1);
});

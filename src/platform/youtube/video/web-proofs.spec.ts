import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, afterEach, beforeEach } from '@jest/globals';
import fc from 'fast-check';
import { newScope } from '../../../../test/youtube/egresses.js';
import { anyText } from '../../../../test/texts/any-text.js';
import { until } from '../../../../test/harness/until.js';
import { type LoggedEvent, recordedEvents } from '../../../../test/youtube/recorded-events.js';
import type { UpstreamResponse } from '../egress/upstream-response.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import {
  readPlayerId,
  readSignatureTimestamp,
  SignatureTimestamp,
  PoTokenProvider,
  readPoToken,
} from './web-proofs.js';

describe('readPlayerId', () => {
  it.each([
    [
      String.raw`var scriptUrl = 'https:\/\/www.youtube.com\/s\/player\/0a1b2c3d\/www-widgetapi.vflset\/www-widgetapi.js'`,
      '0a1b2c3d',
    ],
    ['"/s/player/4fcd6e4a/player_ias.vflset/en_US/base.js"', '4fcd6e4a'],
    ['/s/player/../../x', null],
    ['', null],
  ])('finds the ID in %s', (text, id) => {
    expect(readPlayerId(text)).toBe(id);
  });
});

describe('readSignatureTimestamp', () => {
  it.each([
    ['{contentPlaybackContext:{signatureTimestamp:20345,html5Preference:"x"}}', 20_345],
    ['{signatureTimestamp: 20345}', 20_345],
    ['{"sts": 20345}', 20_345],
    ['a.sts=20345;', 20_345],
    ['a.firsts=20345;', null],
    ['{signatureTimestamp:b}', null],
    ['{signatureTimestamp:203456}', null],
  ])('finds the days in %s', (script, days) => {
    expect(readSignatureTimestamp(script)).toBe(days);
  });
});

describe('SignatureTimestamp', () => {
  /** A timestamp whose first download waits for `release`, and fails when the signal of its scope is aborted. */
  function downloading() {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const fetchText: InnertubeClient['fetchText'] = async (_kind, _client, url, { context }) => {
      const aborted = new Promise<never>((_, reject) => {
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
      });
      await Promise.race([released, aborted]);
      const body = url.pathname === '/iframe_api' ? '/s/player/0a1b2c3d/' : 'signatureTimestamp:20345';
      return { kind: 'ok', media: 'other', body } satisfies UpstreamResponse;
    };
    const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, { fetchText });
    const timestamp = new SignatureTimestamp(innertube);
    const call = () => {
      const leaving = new AbortController();
      const value = timestamp.get(newScope({ signal: leaving.signal }));
      return { value, leave: () => leaving.abort(new Error('left')) };
    };
    return { call, release: () => release() };
  }

  it('is downloaded for all callers: one that disconnects neither ends it nor waits for it, and it is cached', async () => {
    const { call, release } = downloading();
    const [first, second, third] = [call(), call(), call()];
    for (const leaving of [first, third]) {
      leaving.leave();
      await expect(leaving.value).rejects.toThrow('left');
    }
    release();
    await expect(second.value).resolves.toBe(20_345);
    await expect(call().value).resolves.toBe(20_345);
  });
});

const VIDEO = 'aaaaaaaaaaa';
const NOW = Date.UTC(2026, 8, 1, 12, 0, 0);
const read = (response: unknown) => readPoToken(JSON.stringify(response), VIDEO, NOW);

describe('readPoToken', () => {
  it.each([
    ['2026-09-01T18:00:00.000Z', 6 * 3_600_000 - 60_000],
    [NOW + 120_000, 60_000],
    ['2027-09-01T12:00:00Z', 12 * 3_600_000],
    ['2026-09-01T12:00:30Z', 0],
    ['2020-01-01T00:00:00Z', 0],
    ['soon', 0],
    [undefined, 0],
  ])('caches a token that expires at %s for %d ms', (expiresAt, validMs) => {
    expect(read({ poToken: 'Mlvx_-=', contentBinding: VIDEO, expiresAt })).toEqual({ token: 'Mlvx_-=', validMs });
  });

  it.each([
    {},
    { error: 'Failed to fetch' },
    { poToken: '' },
    { poToken: 'with space' },
    { poToken: 'x'.repeat(4_097) },
    { poToken: 7 },
    { poToken: 'Mlvx', contentBinding: 'bbbbbbbbbbb' },
    [],
    null,
  ])('finds no token for the video in %j', (response) => {
    expect(read(response)).toBeNull();
  });

  it('reads any body as a token that a URL can contain, or as none', () => {
    const bodies = fc.oneof(
      anyText(),
      fc.json(),
      fc
        .record({ poToken: anyText(), expiresAt: fc.oneof(anyText(), fc.double()) })
        .map((each) => JSON.stringify(each)),
    );
    fc.assert(
      fc.property(bodies, (body) => {
        const issued = readPoToken(body, VIDEO, NOW);
        if (!issued) return;
        expect(issued.token).toMatch(/^[\x21-\x7e]+$/);
        expect(Number.isSafeInteger(issued.validMs) && issued.validMs >= 0).toBe(true);
      }),
    );
  });
});

describe('PoTokenProvider', () => {
  const NEVER = new AbortController().signal;
  let server: Server;
  let provider: PoTokenProvider;
  let paths: string[];
  let events: LoggedEvent[];
  let respond: (response: ServerResponse) => void;

  beforeEach(async () => {
    [paths, events] = [[], recordedEvents()];
    server = createServer((request, response) => {
      paths.push(request.url ?? '');
      request.resume().on('end', () => respond(response));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    provider = openProvider(5_000);
  });

  function openProvider(timeoutMs: number): PoTokenProvider {
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/provider/`);
    return new PoTokenProvider(url, 2, timeoutMs);
  }

  afterEach(async () => {
    await provider.close();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  it('keeps the path of its URL, and forgets a token that the platform refused', async () => {
    respond = (response) => response.end(JSON.stringify({ poToken: 'Mlvx', expiresAt: Date.now() + 3_600_000 }));
    for (let times = 0; times < 2; times += 1) expect(await provider.tokenFor(VIDEO, NEVER)).toBe('Mlvx');
    provider.reject(VIDEO);
    expect(await provider.tokenFor(VIDEO, NEVER)).toBe('Mlvx');
    expect(paths).toEqual(['/provider/get_pot', '/provider/get_pot']);
  });

  it('issues another token when one has expired', async () => {
    respond = (response) => response.end(JSON.stringify({ poToken: 'Mlvx', expiresAt: Date.now() + 60_100 }));
    await until(async () => (await provider.tokenFor(VIDEO, NEVER)) === 'Mlvx' && paths.length === 2);
  });

  it('is not asked again after it did not respond for three videos', async () => {
    provider = openProvider(400);
    respond = () => undefined;
    for (const video of ['a', 'b', 'c', 'd']) expect(await provider.tokenFor(video, NEVER)).toBeNull();
    expect(paths).toHaveLength(3);
    expect(events).toEqual([{ event: 'youtube_po_token_provider_down', pauseSeconds: 60 }]);
  });

  it('is not blamed for a caller that disconnects', async () => {
    const leaving = new AbortController();
    respond = () => leaving.abort(new Error('left'));
    await expect(provider.tokenFor(VIDEO, leaving.signal)).rejects.toThrow('left');
    for (const video of ['a', 'b', 'c']) {
      await expect(provider.tokenFor(video, AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
    }
    expect(events).toEqual([]);
  });
});

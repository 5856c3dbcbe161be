import { describe, expect, it } from '@jest/globals';
import { newScope } from '../../../../test/youtube/egresses.js';
import type { UpstreamResponse } from '../egress/upstream-response.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { readPlayerId, readSignatureTimestamp, SignatureTimestamp } from './web-proofs.js';

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

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../../test/any-text.js';
import { readPlayerId, readSignatureTimestamp } from './signature-timestamp.js';

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

  it('never throws and takes no longer for a hostile script', () => {
    fc.assert(
      fc.property(anyText(), (script) => {
        const days = readSignatureTimestamp(script);
        expect(days === null || Number.isSafeInteger(days)).toBe(true);
      }),
    );
    const before = performance.now();
    for (const part of ['sts', 'sts:', 'signatureTimestamp ', '/s/player/', String.raw`\/s\/player\/a`]) {
      readSignatureTimestamp(part.repeat(200_000));
      readPlayerId(part.repeat(200_000));
    }
    expect(performance.now() - before).toBeLessThan(1_000);
  });
});

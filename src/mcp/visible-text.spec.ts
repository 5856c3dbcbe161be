import { describe, expect, it } from '@jest/globals';
import { visibleText } from './tools/tool.js';

const TAGGED = [...'obey'].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('');

describe('a text for a model', () => {
  it.each([
    ['zero-width characters', 'bo\u200bat\u2060\ufeff', 'bo\ufffdat\ufffd'],
    ['direction characters', '\u202eevil\u202c \u2066a\u2069\u200e\u200f\u061c', '\ufffdevil\ufffd \ufffda\ufffd'],
    ['tags, of any number', `flag${TAGGED}!`, 'flag\ufffd!'],
    ['variation selectors', 'a\ufe0f\u{e0100}b\u{e01ef}', 'a\ufffdb\ufffd'],
    ['fillers and soft hyphens', '\u3164\u115fti\u00addal', '\ufffdti\ufffddal'],
    ['joiners within letters that join nothing', 'a\u200cb\u200dc', 'a\ufffdb\ufffdc'],
    ['joiners in a row', 'می\u200c\u200d\u200cخواهم', 'می\ufffdخواهم'],
  ])('shows that it has %s', (_what, text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });

  it.each([
    'می\u200cخواهم',
    'क्\u200dष',
    '👩\u200d👩\u200d👧',
    '👩\u200d❤\ufe0f\u200d👨',
    '☀\ufe0f',
    '1\ufe0f\u20e3',
    '今日は、世界。',
  ])('keeps what a script or an emoji needs (%s)', (text) => {
    expect(visibleText(text)).toBe(text);
  });
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { json3 as writeJson3, legacyXml } from '../../../../test/fake-youtube/calls/caption-formats.js';
import { timed } from '../../../../test/fake-youtube/catalogue/track.js';
import type { Segment } from '../../../domain/transcript.js';
import { UnreadableError } from '../response-parsing.js';
import { readCaptionJson3, readCaptionXml } from './caption-formats.js';

const legacy = (cues: string) => `<?xml version="1.0" encoding="utf-8" ?><transcript>${cues}</transcript>`;
const json3 = (events: unknown) => JSON.stringify({ wireMagic: 'pb3', pens: [{}], events });
const textsOf = (segments: Segment[]) => segments.map(({ text }) => text);
const legacyText = (text: string) => textsOf(readCaptionXml(legacy(`<text start="1" dur="2">${text}</text>`)));

describe('legacy XML', () => {
  it('returns text, start and duration in seconds', () => {
    const xml = legacy('<text start="0" dur="1.54">Good morning</text><text start="1.54" dur="4.16">everyone</text>');
    expect(readCaptionXml(xml)).toEqual([
      { text: 'Good morning', start: 0, duration: 1.54 },
      { text: 'everyone', start: 1.54, duration: 4.16 },
    ]);
  });

  it('reads a missing duration as 0 and skips cues without visible text', () => {
    const xml = legacy(
      '<text start="1">a</text><text start="2" dur="1"></text><text start="3" dur="1"> \n&#8203;</text><text start="4"/>',
    );
    expect(readCaptionXml(xml)).toEqual([{ text: 'a', start: 1, duration: 0 }]);
  });

  it.each([
    ['it&amp;#39;s', "it's"],
    ['it&#39;s', "it's"],
    ['Q&amp;amp;A', 'Q&A'],
    ['I &amp;lt;3 you', 'I <3 you'],
    ['this is &lt;i>not&lt;/i> it', 'this is not it'],
    ['&lt;font color="#E5E5E5"&gt;grey&lt;/font&gt; &amp;lt;b&amp;gt;bold&amp;lt;/b&amp;gt;', 'grey bold'],
    ['one&lt;br /&gt;two\r\nthree<br/>four', 'one two three four'],
    ['&amp;quot;a&amp;nbsp;b&amp;quot;', '"a b"'],
    ['&#128512; &#x1F600; &#55357;&#56832;', '😀 😀 😀'],
    ['a&#0;b&#x110000;c&#9999999999;', 'a\ufffdb\ufffdc\ufffd'],
    ['&copy; &; &#; &#x; AT&T', '&copy; &; &#; &#x; AT&T'],
    ['&lt;c.yellow.bg_blue&gt;a&lt;/c&gt; &lt;i a = "b" /&gt;&lt;ix&gt; &lt;3', 'a <ix> <3'],
    ['&lt;laughs&gt; a', '<laughs> a'],
    ['שלום עולם', 'שלום עולם'],
    ['日本語\u3000字幕', '日本語\u3000字幕'],
    ['lone \ud83d half', 'lone \ud83d half'],
  ])('decodes %j', (written, read) => {
    expect(legacyText(written)).toEqual([read]);
  });

  it('skips comments, indentation and unknown elements between cues', () => {
    const xml = `\ufeff<?xml version="1.0"?>\r\n<!DOCTYPE transcript>\n<transcript>\n <!-- x -->\n <text start='1' dur='2' >a<!-- x -->b</text>\n <other/>\n</transcript>\n`;
    expect(readCaptionXml(xml)).toEqual([{ text: 'ab', start: 1, duration: 2 }]);
  });

  it('sorts cues by their start, stably', () => {
    const xml = legacy('<text start="5">c</text><text start="1">a</text><text start="1">b</text>');
    expect(textsOf(readCaptionXml(xml))).toEqual(['a', 'b', 'c']);
  });

  it('reads a document without cues as an empty list', () => {
    expect(readCaptionXml('<transcript/>')).toEqual([]);
    expect(readCaptionXml(legacy(''))).toEqual([]);
  });

  it('never returns a negative time', () => {
    expect(readCaptionXml(legacy('<text start="-1" dur="-2">a</text>'))).toEqual([
      { text: 'a', start: 0, duration: 0 },
    ]);
  });
});

describe('json3', () => {
  it('joins segments and skips windows, roll-up line breaks and empty events', () => {
    const events = [
      { tStartMs: 0, dDurationMs: 9000, id: 1, wpWinPosId: 1 },
      {
        tStartMs: '80',
        dDurationMs: '3200',
        segs: [{ utf8: 'so' }, { utf8: ' it', tOffsetMs: 240 }, {}, { utf8: '\nworks' }],
      },
      { tStartMs: 900, aAppend: 1, segs: [{ utf8: '\n' }] },
      { tStartMs: 1000, segs: [{ utf8: 'then' }] },
      { tStartMs: 1500, segs: [] },
    ];
    expect(readCaptionJson3(json3(events))).toEqual([
      { text: 'so it works', start: 0.08, duration: 3.2 },
      { text: 'then', start: 1, duration: 0 },
    ]);
  });

  it('includes the text of an appended event', () => {
    expect(textsOf(readCaptionJson3(json3([{ tStartMs: 1, aAppend: 1, segs: [{ utf8: 'more' }] }])))).toEqual(['more']);
  });

  it.each([
    '{}',
    '[]',
    'null',
    '{"events":{}}',
    '{"events":[1]}',
    '{"events":[{"segs":{}}]}',
    '{"events":[{"segs":[{"utf8":1}]}]}',
    '{"events":[{"tStartMs":"x","segs":[{"utf8":"a"}]}]}',
  ])('rejects %s', (body) => expect(() => readCaptionJson3(body)).toThrow(UnreadableError));
});

describe('every caption format', () => {
  it.each([
    '',
    ' \n',
    '<html><body><form action="x"></form></body></html>',
    '{"error":{}}',
    '<transcript>',
    '<text start="0">a</text>',
    '</transcript>',
    '<transcript></transcript><transcript/>',
    '<transcript></transcript>x',
    'x<transcript/>',
    '<transcript><text>a</text></transcript>',
    '<transcript><text start="1e3">a</text></transcript>',
    '<transcript><text start="0"><![CDATA[a]]></text></transcript>',
    '<transcript><text start="0">a<text start="1">b</text></transcript>',
    '<transcript><text start="0">a</transcript>',
  ])('rejects %j', (body) => {
    expect(() => readCaptionXml(body)).toThrow(UnreadableError);
    expect(() => readCaptionJson3(body)).toThrow(UnreadableError);
  });

  it('returns the same segments for one track in every format', () => {
    fc.assert(
      fc.property(fc.array(cue, { maxLength: 20 }), (cues) => {
        const track = timed('en', cues.map(cueOf));
        const expected = segmentsOf(cues);
        expect(readCaptionXml(legacyXml(track))).toEqual(expected);
        expect(readCaptionJson3(writeJson3(track))).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  it('rejects a body that is truncated anywhere, and never returns a partial transcript', () => {
    const cues = fc.array(cue, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(cues, fc.nat(), (written, at) => {
        const track = timed('en', written.map(cueOf));
        for (const [body, read] of [
          [legacyXml(track), readCaptionXml],
          [writeJson3(track), readCaptionJson3],
        ] as const) {
          expect(() => read(body.slice(0, at % body.length))).toThrow(UnreadableError);
        }
      }),
      { numRuns: 100 },
    );
  });
});

interface Cue {
  words: string[];
  spaces: string[];
  startMs: number;
  durationMs: number;
}

const word = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
    fc.constantFrom(
      ...['&', '&amp;', '&#39;', '"', "it's", '<3', '>>', '<laughs>', '😀', 'שלום', '字幕', 'é', '{"a":1}', ']]>'],
    ),
  )
  .filter((text) => !/\s/.test(text) && !/<\/?(?:i|b|u|s|em|strong|span|font|ruby|rt|rp|c|br)\b/i.test(text));
const cue: fc.Arbitrary<Cue> = fc.record({
  words: fc
    .array(word, { maxLength: 6 })
    .filter((words) => words.length === 0 || /[^\s\u200b-\u200f\u2060\ufeff]/.test(words.join(''))),
  spaces: fc.array(fc.constantFrom(' ', '\n', '\r\n', ' \n ', '\u00a0', '\t '), { minLength: 1 }),
  startMs: fc.nat(40_000_000),
  durationMs: fc.nat(100_000),
});

function segmentsOf(cues: Cue[]): Segment[] {
  return cues
    .filter(({ words }) => words.length > 0)
    .map(({ words, startMs, durationMs }) => ({
      text: words.join(' '),
      start: startMs / 1000,
      duration: durationMs / 1000,
    }))
    .sort((one, other) => one.start - other.start);
}

function cueOf({ words, spaces, startMs, durationMs }: Cue) {
  const text = words.map((each, index) => `${spaces[index % spaces.length] ?? ' '}${each}`).join('');
  return { startMs, durationMs, runs: [{ text }] };
}

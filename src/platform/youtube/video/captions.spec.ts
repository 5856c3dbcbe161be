import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  escapeXml,
  json3 as writeJson3,
  legacyXml,
  srv3 as writeSrv3,
} from '../../../../test/fake-youtube/calls/caption-formats.js';
import { timed } from '../../../../test/fake-youtube/catalogue/track.js';
import type { Segment } from '../../../domain/transcript.js';
import { UnreadableError } from '../response-parsing.js';
import { CHARACTERS_MAX, CUES_MAX, readCaptions, captionUrl } from './captions.js';

const legacy = (cues: string) => `<?xml version="1.0" encoding="utf-8" ?><transcript>${cues}</transcript>`;
const srv3 = (cues: string) => `<?xml version="1.0" encoding="utf-8" ?><timedtext format="3">
<head><pen id="1" i="1"/><ws id="0"/><wp id="0"/></head><body><w t="0" id="1"/>${cues}</body></timedtext>`;
const json3 = (events: unknown) => JSON.stringify({ wireMagic: 'pb3', pens: [{}], events });
const WRITERS = [legacyXml, writeSrv3, writeJson3];
const textsOf = (segments: Segment[]) => segments.map(({ text }) => text);
const legacyText = (text: string) => textsOf(readCaptions(legacy(`<text start="1" dur="2">${text}</text>`)));

const INVISIBLE = [
  '\u202b\u202c',
  '\u061c',
  '\u2066\u2069',
  '\u200e',
  '\u200b\u200d',
  '\u2060',
  '\ufeff',
  '\u2800',
  '\u3164',
  '\uffa0',
  '\u115f',
  '\u00ad',
  '\u180e',
  '\ufe0f',
  '\u{e0020}',
  '\u0007',
];

describe('legacy XML', () => {
  it('returns text, start and duration in seconds', () => {
    const xml = legacy('<text start="0" dur="1.54">Good morning</text><text start="1.54" dur="4.16">everyone</text>');
    expect(readCaptions(xml)).toEqual([
      { text: 'Good morning', start: 0, duration: 1.54 },
      { text: 'everyone', start: 1.54, duration: 4.16 },
    ]);
  });

  it('reads a missing duration as 0 and skips cues without visible text', () => {
    const xml = legacy(
      '<text start="1">a</text><text start="2" dur="1"></text><text start="3" dur="1"> \n&#8203;</text><text start="4"/>',
    );
    expect(readCaptions(xml)).toEqual([{ text: 'a', start: 1, duration: 0 }]);
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
    ['&copy; &; &#; &#x; AT&T &copy', '© &; &#; &#x; AT&T &copy'],
    ['na&amp;iuml;ve &amp;hellip; &amp;frac12; &amp;euro;', 'naïve … ½ €'],
    ['&amp;amp;ndash; &amp;amp;#8211; &amp;amp;lt;3', '– – <3'],
    ['&lt;c.yellow.bg_blue&gt;a&lt;/c&gt; &lt;i a = "b" /&gt;&lt;ix&gt; &lt;3', 'a <ix> <3'],
    [
      'H&lt;sub&gt;2&lt;/sub&gt;O &lt;del&gt;a&lt;/del&gt;&lt;ins&gt;b&lt;/ins&gt; &lt;mark&gt;&lt;small&gt;c',
      'H2O ab c',
    ],
    [
      '&lt;v Mrs Lin&gt;a&lt;/v&gt; &lt;v.loud Owen&gt;b &lt;i.foreign&gt;c&lt;/i&gt; &lt;lang en&gt;d&lt;/lang&gt;',
      'a b c d',
    ],
    ['so&lt;00:00:01.469&gt;&lt;c&gt; it&lt;/c&gt;&lt;01:02.000&gt; works', 'so it works'],
    [
      'at &lt;10:30&gt;, a &lt; b and c &gt; d, &lt;b and c&gt; &lt;p and q&gt;',
      'at <10:30>, a < b and c > d, <b and c> <p and q>',
    ],
    ['&lt;p&gt;one&lt;/p&gt;&lt;p&gt;two&lt;/p&gt;', 'one two'],
    ['a < b', 'a < b'],
    ['<p>one</p><p class="x">two</p>', 'one two'],
    ['&lt;laughs&gt; a', '<laughs> a'],
    ['שלום עולם', 'שלום עולם'],
    ['日本語\u3000字幕', '日本語\u3000字幕'],
    ['lone \ud83d half', 'lone \ud83d half'],
  ])('decodes %j', (written, read) => {
    expect(legacyText(written)).toEqual([read]);
  });

  it.each(INVISIBLE)('skips a cue of %j only', (text) => {
    expect(legacyText(text)).toEqual([]);
    expect(legacyText(`&amp;#${text.codePointAt(0) ?? 0};`)).toEqual([]);
    expect(legacyText(`${text}a${text}`)[0]).toContain('a');
  });

  it('skips comments, indentation and unknown elements between cues', () => {
    const xml = `\ufeff<?xml version="1.0"?>\r\n<!DOCTYPE transcript>\n<transcript>\n <!-- x -->\n <text start='1' dur='2' >a<!-- x -->b</text>\n <other/>\n</transcript>\n`;
    expect(readCaptions(xml)).toEqual([{ text: 'ab', start: 1, duration: 2 }]);
  });

  it('sorts cues by their start, stably', () => {
    const xml = legacy('<text start="5">c</text><text start="1">a</text><text start="1">b</text>');
    expect(textsOf(readCaptions(xml))).toEqual(['a', 'b', 'c']);
  });

  it('reads a document without cues as an empty list', () => {
    expect(readCaptions('<transcript/>')).toEqual([]);
    expect(readCaptions(legacy(''))).toEqual([]);
  });

  it('never returns a negative time', () => {
    expect(readCaptions(legacy('<text start="-1" dur="-2">a</text>'))).toEqual([{ text: 'a', start: 0, duration: 0 }]);
  });
});

describe('srv3', () => {
  it('joins the words of a line, with times in milliseconds', () => {
    const lines = [
      '<p t="80" d="3200" w="1"><s ac="0">so</s><s t="240" ac="0"> it&#39;s</s><s p="1"> A&amp;amp;B</s></p>',
      '<p t="900" d="10" w="1" a="1">\n</p><p t="950"/><p t="1000">then\nthis</p>',
    ];
    expect(readCaptions(srv3(lines.join('\n')))).toEqual([
      { text: "so it's A&B", start: 0.08, duration: 3.2 },
      { text: 'then this', start: 1, duration: 0 },
    ]);
  });

  it('of the second version has its own names', () => {
    expect(readCaptions('<timedtext><text t="1500" d="20">a</text></timedtext>')).toEqual([
      { text: 'a', start: 1.5, duration: 0.02 },
    ]);
  });

  it('may have no lines', () => {
    expect(readCaptions(srv3(''))).toEqual([]);
    expect(readCaptions('<timedtext format="3"/>')).toEqual([]);
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
    expect(readCaptions(json3(events))).toEqual([
      { text: 'so it works', start: 0.08, duration: 3.2 },
      { text: 'then', start: 1, duration: 0 },
    ]);
  });

  it('decodes entities and removes markup, also in parts', () => {
    const segs = ['&gt;&gt; it&#39;s', ' &amp;amp;eac', 'ute; <sup>2', '</sup>'].map((utf8) => ({ utf8 }));
    expect(textsOf(readCaptions(json3([{ tStartMs: 1, segs }])))).toEqual([">> it's é 2"]);
  });

  it.each(INVISIBLE)('skips an event of %j only', (utf8) => {
    expect(readCaptions(json3([{ tStartMs: 1, segs: [{ utf8 }] }]))).toEqual([]);
  });

  it('may have no events', () => {
    expect(readCaptions('{"wireMagic":"pb3"}')).toEqual([]);
    expect(readCaptions('{"wireMagic":"pb3","pens":[{}],"events":[]}')).toEqual([]);
  });

  it('includes the text of an appended event', () => {
    expect(textsOf(readCaptions(json3([{ tStartMs: 1, aAppend: 1, segs: [{ utf8: 'more' }] }])))).toEqual(['more']);
  });

  it.each([
    '{}',
    '[]',
    'null',
    '{"events":{}}',
    '{"wireMagic":"pb3","events":null}',
    '{"events":[1]}',
    '{"events":[{"segs":{}}]}',
    '{"events":[{"segs":[{"utf8":1}]}]}',
    '{"events":[{"tStartMs":"x","segs":[{"utf8":"a"}]}]}',
  ])('rejects %s', (body) => expect(() => readCaptions(body)).toThrow(UnreadableError));
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
    '<timedtext format="3"><body></body>',
    '<timedtext></transcript>',
    '<timedtext><p>a</p></timedtext>',
    '<timedtext><p t="0">a<p t="1">b</p></timedtext>',
    '<timedtexts></timedtexts>',
  ])('rejects %j', (body) => {
    expect(() => readCaptions(body)).toThrow(UnreadableError);
  });

  it('is refused when its text has more cues or characters than the work on a text is bounded for', () => {
    const cues = (count: number, text = 'a') => new Array<string>(count).fill(`<p t="1">${text}</p>`).join('');
    const events = (count: number) => new Array<object>(count).fill({ segs: [{ utf8: 'a' }] });
    expect(readCaptions(srv3(cues(CUES_MAX)))).toHaveLength(CUES_MAX);
    expect(readCaptions(json3(events(CUES_MAX)))).toHaveLength(CUES_MAX);
    expect(readCaptions(srv3(cues(1_000, 'a'.repeat(CHARACTERS_MAX / 1_000))))).toHaveLength(1_000);
    expect(() => readCaptions(srv3(cues(CUES_MAX + 1)))).toThrow(UnreadableError);
    expect(() => readCaptions(json3(events(CUES_MAX + 1)))).toThrow(UnreadableError);
    expect(readCaptions(srv3(cues(2 * CUES_MAX, ' ')))).toEqual([]);
    expect(() => readCaptions(srv3(cues(2 * CUES_MAX + 2, ' ')))).toThrow(UnreadableError);
    expect(() => readCaptions(srv3(cues(1_001, 'a'.repeat(CHARACTERS_MAX / 1_000))))).toThrow(UnreadableError);
    expect(() => readCaptions(json3([{ segs: [{ utf8: 'a'.repeat(CHARACTERS_MAX + 1) }] }]))).toThrow(UnreadableError);
  });

  it('is read after a byte order mark', () => {
    const expected = [{ text: 'a', start: 1, duration: 0 }];
    expect(readCaptions(`\ufeff${legacy('<text start="1">a</text>')}`)).toEqual(expected);
    expect(readCaptions(`\ufeff${srv3('<p t="1000">a</p>')}`)).toEqual(expected);
    expect(readCaptions(`\ufeff${json3([{ tStartMs: 1000, segs: [{ utf8: 'a' }] }])}`)).toEqual(expected);
  });

  it('returns the same text however often it is escaped', () => {
    const part = fc.constantFrom('o', ' ', '<', '>', '&', '"', "'", '<3', ';', '#', 'é', '😀', 'amp');
    const plain = fc.array(part, { minLength: 1 }).map((parts) => `x${parts.join('')}x`);
    fc.assert(
      fc.property(plain, fc.integer({ min: 1, max: 3 }), (text, times) => {
        fc.pre(!text.includes('&amp;'));
        let escaped = text;
        for (let time = 0; time < times; time++) escaped = escapeXml(escaped);
        const expected = [text.replace(/ +/g, ' ')];
        expect(legacyText(escaped)).toEqual(expected);
        expect(textsOf(readCaptions(srv3(`<p t="1">${escaped}</p>`)))).toEqual(expected);
        expect(textsOf(readCaptions(json3([{ segs: [{ utf8: escaped }] }])))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('returns the same segments for one track in every format', () => {
    fc.assert(
      fc.property(fc.array(cue, { maxLength: 20 }), (cues) => {
        const track = timed('en', cues.map(cueOf));
        const expected = segmentsOf(cues);
        for (const write of WRITERS) expect(readCaptions(write(track))).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  it('rejects a body that is truncated anywhere, and never returns a partial transcript', () => {
    const cues = fc.array(cue, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(cues, fc.nat(), (written, at) => {
        const track = timed('en', written.map(cueOf));
        for (const body of WRITERS.map((write) => write(track)))
          expect(() => readCaptions(body.slice(0, at % body.length))).toThrow(UnreadableError);
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
    fc.constantFrom('&', '"', "it's", '<3', '>>', '<laughs>', '😀', 'שלום', '字幕', 'é', '{"a":1}', ']]>'),
  )
  .filter((text) => !/\s/.test(text) && !/<\/?[a-z]{1,6}\b/i.test(text));
const cue: fc.Arbitrary<Cue> = fc.record({
  words: fc
    .array(word, { maxLength: 6 })
    .filter((words) => words.length === 0 || /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]/u.test(words.join(''))),
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

const BASE = 'https://www.youtube.com/api/timedtext?v=abcdefghijk&lang=en';

describe('captionUrl', () => {
  it('replaces or removes the format in the URL', () => {
    expect(captionUrl(`${BASE}&fmt=srv3`, 'json3', 'abcdefghijk')?.search).toBe('?v=abcdefghijk&lang=en&fmt=json3');
    expect(captionUrl(`${BASE}&fmt=srv3&fmt=vtt`, null, 'abcdefghijk')?.search).toBe('?v=abcdefghijk&lang=en');
    expect(captionUrl(BASE, 'json3', 'abcdefghijk')?.searchParams.getAll('fmt')).toEqual(['json3']);
  });

  it('removes the parameter that adds positions to the text', () => {
    expect(captionUrl(`${BASE}&xosf=1&fmt=srv3`, null, 'abcdefghijk')?.search).toBe('?v=abcdefghijk&lang=en');
  });

  it('is null for another video, host or path', () => {
    expect(captionUrl(BASE, null, 'zzzzzzzzzzz')).toBeNull();
    for (const url of [
      '',
      'timedtext',
      BASE.replace('www.youtube.com', 'example.org'),
      BASE.replace('https:', 'http:'),
    ]) {
      expect(captionUrl(url, null, 'abcdefghijk')).toBeNull();
    }
    expect(captionUrl('https://www.youtube.com/logout?v=abcdefghijk', null, 'abcdefghijk')).toBeNull();
  });
});

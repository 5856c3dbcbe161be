import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Segment } from '../../../domain/transcript.js';
import { readCaptionDocument, readCaptionXml } from './caption-formats.js';
import { readPlainCues } from './plain-text.js';
import { UnreadableError } from '../response-parsing.js';

const HEAD = '<?xml version="1.0" encoding="utf-8" ?>';

function read(reader: (xml: string) => Segment[] | null, xml: string): Segment[] | 'unreadable' | null {
  try {
    return reader(xml);
  } catch (error) {
    if (error instanceof UnreadableError) return 'unreadable';
    throw error;
  }
}

const number = fc.oneof(
  fc.nat(90_000).map(String),
  fc.double({ min: 0, max: 90_000, noNaN: true }).map((value) => value.toFixed(3)),
  fc.constantFrom('0', '0.0005', '1.', '.5', '-1', '1e3', '', '007', '9'.repeat(15), '9'.repeat(16), 'NaN', '1.2.3'),
);
const words = fc
  .array(
    fc.constantFrom(
      'and',
      ' ',
      'so',
      '&amp;#39;',
      '&amp;amp;',
      '&lt;3',
      '&#10;',
      '\n',
      '>',
      'été',
      '\u200b',
      '[Music]',
    ),
  )
  .map((parts) => parts.join(''));
const cue = fc
  .tuple(number, fc.option(number), words)
  .map(([start, dur, text]) => `<text start="${start}"${dur === null ? '' : ` dur="${dur}"`}>${text}</text>`);
const odd = fc.constantFrom(
  '<text dur="1">x</text>',
  ' ',
  '\n',
  'x',
  '<p>x</p>',
  '<text start="1"/>',
  '<!-- -->',
  '<text',
);
const xml = fc
  .tuple(
    fc.constantFrom(HEAD, '', `${HEAD}\n`, '<!-- -->'),
    fc.array(fc.oneof({ weight: 12, arbitrary: cue }, { weight: 1, arbitrary: odd })),
    fc.constantFrom('</transcript>', '</transcript>\n', '', '</transcript>x', '</transcript><transcript>'),
  )
  .map(([head, cues, end]) => `${head}<transcript>${cues.join('')}${end}`);

describe('a legacy caption document', () => {
  it('that readPlainCues reads has the same segments as with readCaptionDocument', () => {
    fc.assert(
      fc.property(xml, (document) => {
        const short = readPlainCues(document);
        if (short !== null) expect(short).toEqual(readCaptionDocument(document));
      }),
      { numRuns: 500 },
    );
  });

  it('is read the same by readCaptionXml and readCaptionDocument', () => {
    fc.assert(
      fc.property(xml, fc.nat(), (document, cut) => {
        const text = document.slice(0, document.length - (cut % 3 === 0 ? cut % document.length : 0));
        expect(read(readCaptionXml, text)).toEqual(read(readCaptionDocument, text));
      }),
      { numRuns: 500 },
    );
  });

  it('in the usual layout of the platform is read by readPlainCues', () => {
    const document = `${HEAD}<transcript><text start="0.24" dur="3.12">it&amp;#39;s  the tide</text><text start="3.5">on</text></transcript>`;
    expect(readPlainCues(document)).toEqual([
      { text: "it's the tide", start: 0.24, duration: 3.12 },
      { text: 'on', start: 3.5, duration: 0 },
    ]);
  });

  it.each([
    ['cut in the middle', '<transcript><text start="1" dur="2">the ti'],
    ['with cues out of order', '<transcript><text start="2">b</text><text start="1">a</text></transcript>'],
    ['with markup', '<transcript><text start="1"><i>a</i></text></transcript>'],
    ['of another form', '<timedtext format="3"><body><p t="0" d="5">a</p></body></timedtext>'],
    ['with room between cues', '<transcript><text start="1">a</text> <text start="2">b</text></transcript>'],
  ])('%s is not read by readPlainCues', (_case, document) => {
    expect(readPlainCues(document)).toBeNull();
  });
});

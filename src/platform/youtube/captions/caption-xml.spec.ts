import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Segment } from '../../../domain/transcript.js';
import { readCaptionXml } from './caption-xml.js';
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
  it('is read the same when its cues are not in the usual layout', () => {
    fc.assert(
      fc.property(xml, fc.nat(), (document, cut) => {
        const text = document.slice(0, document.length - (cut % 3 === 0 ? cut % document.length : 0));
        expect(read(readCaptionXml, text)).toEqual(read(readCaptionXml, text.replaceAll('<text ', '<text  ')));
      }),
      { numRuns: 500 },
    );
  });
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseText, tokenizeVTTCue, type ParsedCue } from 'media-captions';
import { anyText } from '../../../test/texts/any-text.js';
import type { Segment } from '../../domain/transcript.js';
import { lineText } from './line-text.js';
import { srt, webVtt } from './subtitles.js';

/** The declarations of the package do not resolve under Node's rules for ES modules. */
declare module 'media-captions' {
  export interface ParsedCue {
    id: string;
    startTime: number;
    endTime: number;
    text: string;
  }
  export function parseText(
    text: string,
    options: { type: 'srt' | 'vtt'; strict: boolean; errors?: boolean },
  ): Promise<{ cues: ParsedCue[]; errors: Error[] }>;
  /** The text of a WebVTT cue without its escapes, and its tags. */
  export function tokenizeVTTCue(cue: ParsedCue): { type: string; data: string }[];
}

const WORD_JOINER = '\u2060';

/** Texts that a parser could take for something else than text. */
const HOSTILE = [
  '-->',
  '00:00:01.000 --> 00:00:02.000',
  '<i>',
  '</v>',
  '<c.yellow>',
  '<00:00:01.000>',
  '&lt;b&gt;',
  '&amp;amp;',
  '&',
  '{\\an8}',
  '{y:i}',
  'NOTE',
  'WEBVTT',
  '42',
  '\r\n\r\n1\r\n',
  '\u2028',
  '\u0085',
  '\0',
  '\u001b[2J',
  '\ufeff',
  '\ud800',
  'سلام دنیا',
  'שלום',
  '\u200f(ב)\u200e',
  '今日は、世界。',
  'ไทย',
  '👩‍👩‍👧',
];

/** Below 100 hours: the parser accepts two digits of hours only. */
const segments: fc.Arbitrary<Segment[]> = fc
  .array(
    fc.record({
      text: fc.oneof(
        fc.array(fc.oneof(fc.constantFrom(...HOSTILE), fc.constantFrom('and ', 'so', ' ', '.')), { maxLength: 5 }),
        anyText({ maxLength: 12 }).map((text) => [text]),
      ),
      start: fc.oneof(fc.constantFrom(0, 0.0004, 3599.9996, 300_000), fc.double({ min: 0, max: 40_000, noNaN: true })),
      duration: fc.oneof(fc.constantFrom(0, 0.0001, 2), fc.double({ min: 0, max: 20, noNaN: true })),
    }),
    { maxLength: 12 },
  )
  .map((list) =>
    list.map((one) => ({ ...one, text: one.text.join('') })).sort((one, other) => one.start - other.start),
  );

/** @throws Error when the cue has markup */
function shownText(cue: ParsedCue): string {
  const tokens = tokenizeVTTCue(cue);
  if (tokens.some(({ type }) => type !== 'text')) throw new Error(`The cue has markup: ${JSON.stringify(tokens)}`);
  return tokens.map(({ data }) => data).join('');
}

const textsOf = (list: readonly Segment[]): string[] =>
  list.map(({ text }) => lineText(text)).filter((text) => text !== '');

function expectOrder(cues: readonly ParsedCue[]): void {
  for (const [index, { startTime, endTime }] of cues.entries()) {
    expect(endTime).toBeGreaterThan(startTime);
    expect(startTime).toBeGreaterThanOrEqual(cues[index - 1]?.endTime ?? 0);
  }
}

describe('a WebVTT file', () => {
  it('is read without errors and as it was written by a strict parser, whatever the texts and times', async () => {
    await fc.assert(
      fc.asyncProperty(segments, async (list) => {
        const { cues, errors } = await parseText(webVtt(list), { type: 'vtt', strict: true, errors: true });
        expect(errors).toEqual([]);
        expect(cues.flatMap((cue) => shownText(cue).split('\n'))).toEqual(textsOf(list));
        expectOrder(cues);
      }),
      { numRuns: 300 },
    );
  });

  it('has its cues in the form of the specification', () => {
    const list = [
      { text: 'A & B <c> --> D', start: 0.24, duration: 3.12 },
      { text: 'next', start: 3.4, duration: 2.9 },
      { text: 'late', start: 360_061.5, duration: 1 },
    ];
    expect(webVtt(list)).toBe(
      'WEBVTT\n' +
        '\n00:00:00.240 --> 00:00:03.360\nA &amp; B &lt;c&gt; --&gt; D\n' +
        '\n00:00:03.400 --> 00:00:06.300\nnext\n' +
        '\n100:01:01.500 --> 100:01:02.500\nlate\n',
    );
  });
});

describe('a SubRip file', () => {
  it('is read as it was written by a parser, whatever the texts and times', async () => {
    await fc.assert(
      fc.asyncProperty(segments, async (list) => {
        const { cues, errors } = await parseText(srt(list), { type: 'srt', strict: true, errors: true });
        expect(errors).toEqual([]);
        const shown = cues.flatMap((cue) => cue.text.replaceAll(WORD_JOINER, '').split('\n'));
        expect(shown).toEqual(textsOf(list).map((text) => text.replaceAll(WORD_JOINER, '')));
        expectOrder(cues);
        expect(cues.map(({ id }) => id)).toEqual(cues.map((_, index) => String(index + 1)));
      }),
      { numRuns: 300 },
    );
  });

  it('has numbered cues, times with a comma, and an invisible mark in what players would read as markup', () => {
    const list = [
      { text: '<i>not markup</i> {\\an8} a --> b, 1 < 2, <3', start: 0.24, duration: 3.12 },
      { text: 'next', start: 3.4, duration: 2.9 },
    ];
    const marked = `<${WORD_JOINER}i>not markup<${WORD_JOINER}/i> {${WORD_JOINER}\\an8} a --${WORD_JOINER}> b, 1 < 2, <3`;
    expect(srt(list)).toBe(
      `1\n00:00:00,240 --> 00:00:03,360\n${marked}\n` + '\n2\n00:00:03,400 --> 00:00:06,300\nnext\n',
    );
  });
});

describe('the times of cues', () => {
  const times = (list: readonly Segment[]): string[] => webVtt(list).match(/.* --> .*/g) ?? [];
  const at = (start: number, duration: number, text = 'x'): Segment => ({ text, start, duration });

  it('end where the next cue starts, when generated captions overlap', () => {
    expect(times([at(0, 4), at(1.5, 4), at(3, 4)])).toEqual([
      '00:00:00.000 --> 00:00:01.500',
      '00:00:01.500 --> 00:00:03.000',
      '00:00:03.000 --> 00:00:07.000',
    ]);
  });

  it('last two seconds at most without a duration', () => {
    expect(times([at(0, 0), at(1, 0), at(5, 0.0004)])).toEqual([
      '00:00:00.000 --> 00:00:01.000',
      '00:00:01.000 --> 00:00:03.000',
      '00:00:05.000 --> 00:00:07.000',
    ]);
  });

  it('are those of one cue with several lines for segments that start together', () => {
    expect(webVtt([at(1, 2, 'left'), at(1, 3, 'right'), at(1.0004, 1, 'too')])).toBe(
      'WEBVTT\n\n00:00:01.000 --> 00:00:04.000\nleft\nright\ntoo\n',
    );
  });
});

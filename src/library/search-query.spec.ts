import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { normalizedText, tokensOf } from '../transcripts/kept/words.js';
import { matchesIn, parseQuery } from './search-query.js';

const lexemes = (text: string): string[] => [...tokensOf(normalizedText(text))].map(({ lexeme }) => lexeme);
const found = (text: string, query: string): string[] =>
  matchesIn(text, parseQuery(query)).map(({ from, to }) => text.slice(from, to));

describe('the words of a text', () => {
  it.each([
    ['Voilà, DON’T stop at 9.5 km', ['voila', 'don', 't', 'stop', 'at', '9', '5', 'km']],
    ['神经网络 AI模型', ['神经', '经网', '网络', '络', 'ai', '模型', '型']],
    ['霧の\n朝', ['霧の', 'の朝', '朝']],
    ['שָׁלוֹם عَلَيْكُم', ['שלום', 'عليكم']],
    ['हिन्दी में', ['हिन्दी', 'में'].map((word) => word.normalize('NFKD'))],
    ['co\u00adoperate \u{1f600} …', ['cooperate']],
  ])('of %j are without case, accents and punctuation, and pairs in scripts without spaces', (text, expected) => {
    expect(lexemes(text)).toEqual(expected);
  });
});

describe('a query', () => {
  it.each([
    ['Rising TIDE', "('rising':D) & ('tide':D)"],
    ['"rising tide" -harbour', "('rising':D <1> 'tide') & !('harbour':D)"],
    ['-"ebb tide" moor*', "!('ebb':D <1> 'tide') & ('moor':*D)"],
    ["don't", "('don':D <1> 't')"],
    ['神经网络', "('神经':D <1> '经网' <1> '网络')"],
    ['霧', "('霧':*D)"],
    ['AI好', "('ai':D <1> '好':*)"],
    ['“rising tide', "('rising':D <1> 'tide')"],
    ['well-known & | ! <-> :* (\\', "('well':D <1> 'known')"],
  ])('%j is searched as %s', (text, condition) => {
    expect(parseQuery(text).condition).toBe(condition);
  });

  it('names the words that a passage must have, those of phrases too and none that is excluded', () => {
    expect(parseQuery('"rising tide" -storm har*').words).toBe("'rising' & 'tide' & 'har':*");
  });

  it.each(['', '-', '***', '"', '-harbour', 'a*', '\u0000', '\ud800', '🙂', Array(21).fill('a').join(' ')])(
    'that has nothing to search or too much is refused: %j',
    (text) => expect(() => parseQuery(text)).toThrow(expect.objectContaining({ code: 'invalid_request' })),
  );

  it('is read or refused, whatever its characters are, and names lexemes alone', () => {
    const any = fc.array(fc.constantFrom(...'ab-"*\'&|!():<>\\ é霧の\u0000\ud800🙂\u0301ـ'), { maxLength: 40 });
    fc.assert(
      fc.property(fc.oneof(any, fc.array(fc.string({ unit: 'binary' }))), (parts) => {
        const text = parts.join('');
        try {
          expect(parseQuery(text).condition).toMatch(/^(!?\(('[\p{L}\p{N}\p{M}]+'(:\*?D?)?( <\d+> )?)+\)( & )?)+$/u);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_request' });
        }
      }),
    );
  });
});

describe('the places of matches', () => {
  it.each([
    ['The rising tide. A TIDE mill!', 'tide rising', ['rising', 'tide', 'TIDE']],
    ['Le bateau échoué', 'echoue', ['échoué']],
    ['we don’t know', "don't", ['don’t']],
    ['深度学习的神经网络', '神经网', ['神经网']],
    ['今朝の霧は', '霧', ['霧']],
    ['חבלים וְקְשָׁרִים', 'וקשרים', ['וְקְשָׁרִים']],
    ['mooring, moored, moor', 'moor*', ['mooring', 'moored', 'moor']],
    ['ﬁne ﬁsh', 'fish', ['ﬁsh']],
  ])('in %j of %j are %j', (text, query, places) => {
    expect(found(text, query)).toEqual(places);
  });

  const ALPHABETS = {
    spaced: ['ab', 'b', 'é', 'ü', 'a', ' '],
    han: ['神', '经', '网', ' '],
    thai: ['ก', 'ำ', 'ิ', '่', 'ข'],
    hebrew: ['ש', 'ל', '\u05b8', ' '],
  };

  it.each(Object.entries(ALPHABETS))('of a phrase are those of a plain scan: %s', (_script, units) => {
    const text = fc.array(fc.constantFrom(...units), { minLength: 1, maxLength: 60 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, (written, phrase) => {
        const words = plain(phrase);
        fc.pre(words.trim() !== '');
        const isFound = matchesIn(written, parseQuery(`"${phrase}"`)).length > 0;
        expect(isFound).toBe(plain(written).includes(words));
      }),
    );
  });
});

/** Words between spaces; of scripts without spaces all characters in a row. */
function plain(text: string): string {
  const letters = normalizedText(text).replace(/[^\p{L}\p{M}]+/gu, ' ');
  const spaceless = /^[\p{scx=Han}\p{scx=Thai}\s]*$/u.test(letters);
  return spaceless ? letters.replaceAll(' ', '') : ` ${letters.trim()} `;
}

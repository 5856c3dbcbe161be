/** A word of a text as it is searched, or a pair of characters of a script without spaces, and where it stands. */
export interface Token {
  lexeme: string;
  /** The last character of a run, of which the others are the first of a pair. */
  isLast: boolean;
  /** Counts words, and the characters of scripts without spaces. */
  position: number;
  /** In the normalized text. */
  start: number;
  end: number;
  /** Where the first character of a pair ends, and any other token. */
  firstEnd: number;
}

/** Letters, digits and marks of scripts that put no spaces between words. */
const SPACELESS =
  '[[\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}]&&[\\p{L}\\p{N}\\p{M}]]';
/** A run of such characters, which captions break anywhere, or a word. */
const RUN = new RegExp(`(${SPACELESS}(?:\\s*${SPACELESS})*)|[[\\p{L}\\p{N}\\p{M}]--${SPACELESS}]+`, 'gv');
const CHARACTER = /\S/gu;
/** Accents and vowel points, which texts have or leave out, and invisible characters. Other scripts write vowels as marks. */
const LEFT_OUT = new RegExp('[[\\p{M}&&[\\p{Script=Inherited}\\p{Script=Hebrew}\\p{Script=Arabic}]]\\p{Cf}]', 'gv');
/** PostgreSQL stores no longer ones than 2 KB. */
const LEXEME_LENGTH_MAX = 60;

/** A text as it is compared: without case, accents and variants of characters. */
export function normalizedText(text: string): string {
  return text.normalize('NFKD').replace(LEFT_OUT, '').toLowerCase();
}

/** The normalized text, and for each of its characters the one of the text that it comes from. */
export function normalizedWithPlaces(text: string): { normalized: string; places: number[] } {
  let [written, place] = ['', 0];
  const places: number[] = [];
  for (const character of text) {
    const parts = character.normalize('NFKD').replace(LEFT_OUT, '');
    written += parts;
    for (let index = 0; index < parts.length; index += 1) places.push(place);
    place += character.length;
  }
  return { normalized: written.toLowerCase(), places };
}

/** The tokens of a normalized text, in their order. Of a run of characters each has its successor, and the last one none. */
export function* tokensOf(normalized: string): Generator<Token> {
  let position = 1;
  for (const { 0: found, 1: run, index } of normalized.matchAll(RUN)) {
    if (run === undefined) {
      const lexeme = found.slice(0, LEXEME_LENGTH_MAX);
      const end = index + found.length;
      yield { lexeme, isLast: false, position, start: index, end, firstEnd: end };
      position += 1;
      continue;
    }
    let last: Token | undefined;
    for (const { 0: lexeme, index: at } of run.matchAll(CHARACTER)) {
      const start = index + at;
      const end = start + lexeme.length;
      if (last) yield { ...last, lexeme: last.lexeme + lexeme, isLast: false, end };
      last = { lexeme, isLast: true, position, start, end, firstEnd: end };
      position += 1;
    }
    if (last) yield last;
  }
}

/** Of one passage, which can be a single long segment. */
const INDEXED_TOKENS_MAX = 4_000;
/** So many of the words that follow a passage are indexed with it, for phrases that begin in it. */
const FOLLOWING_TOKENS = 12;
/** The weight of the words that follow. A word is searched among the others, whose weight is D, the default. */
const FOLLOWING = 'A';

/** The words of a passage, and the first ones of what follows, as the text of a `tsvector`, which may name a word at each place. */
export function vectorOf(passage: string, following: string): string {
  const own = normalizedText(passage);
  let [words, count, ofFollowing] = ['', 0, 0];
  for (const { lexeme, position, start } of tokensOf(`${own}\n${normalizedText(following)}`)) {
    const follows = start > own.length;
    if ((count += 1) > INDEXED_TOKENS_MAX || (follows && (ofFollowing += 1) > FOLLOWING_TOKENS)) break;
    words += ` '${lexeme}':${position}${follows ? FOLLOWING : ''}`;
  }
  return words;
}

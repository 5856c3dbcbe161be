import { invalidField } from '../domain/errors.js';
import { normalizedText, normalizedWithPlaces, tokensOf, type Token } from '../transcripts/kept/words.js';

/** A lexeme of a term. */
interface Part {
  lexeme: string;
  /** Its place in the term, from 0 on. */
  offset: number;
  /** Whether it is the beginning of what is found. */
  isPrefix: boolean;
  /** Whether it is one character of a script without spaces. */
  isSingle: boolean;
}

/** A word, a phrase or a beginning. What is one word to the caller can be several, such as `don't`. */
interface Term {
  parts: Part[];
  isExcluded: boolean;
}

export interface SearchQuery {
  terms: readonly Term[];
  /** As the text of a `tsquery`. */
  condition: string;
  /** The words that a passage must have, of its own or of what follows it, as the text of a `tsquery`. */
  words: string;
}

export const QUERY_LENGTH_MAX = 200;
const TERMS_MAX = 20;
const QUOTES = /[“”„‟＂]/gu;
const TERM = /(-?)(?:"([^"]*)"?|([^\s"]+))/gu;

/**
 * Reads what is searched: words, "phrases", -words or -"phrases" that are excluded, and beginnings, such as beg*.
 *
 * @throws InvalidRequestError
 */
export function parseQuery(text: string): SearchQuery {
  const found = [...text.replace(QUOTES, '"').matchAll(TERM)];
  const terms = found.flatMap(([, minus, phrase, word = '']): Term[] => {
    const isPrefix = phrase === undefined && word.endsWith('*');
    const parts = partsOf(phrase ?? word, isPrefix);
    return parts.length === 0 ? [] : [{ parts, isExcluded: minus === '-' }];
  });
  if (terms.length > TERMS_MAX) throw invalidField('q', `q must have at most ${TERMS_MAX} words and phrases.`);
  if (terms.every(({ isExcluded }) => isExcluded))
    throw invalidField('q', 'q must have a word to search for, which is not excluded by "-".');
  const words = terms.flatMap(({ parts, isExcluded }) => (isExcluded ? [] : parts.map(wordOf)));
  return { terms, condition: terms.map(conditionOf).join(' & '), words: words.join(' & ') };
}

function partsOf(text: string, isPrefix: boolean): Part[] {
  const tokens = [...tokensOf(normalizedText(text))];
  const first = tokens[0]?.position ?? 0;
  // The last character of a run is in its last pair. Alone, it is the beginning of the pairs in which it comes first.
  const wanted = tokens.filter(({ isLast, end }, index) => !isLast || tokens[index - 1]?.end !== end);
  return wanted.map(({ lexeme, position, isLast }, index) => {
    const begins = isPrefix && index === wanted.length - 1;
    if (begins && !isLast && [...lexeme].length < 2)
      throw invalidField('q', 'q must have at least two characters before a "*".');
    return { lexeme, offset: position - first, isPrefix: isLast || begins, isSingle: isLast };
  });
}

const wordOf = ({ lexeme, isPrefix }: Part): string => `'${lexeme}'${isPrefix ? ':*' : ''}`;

/** The first word is one of the passage itself, D; those after it can follow the passage. */
function conditionOf({ parts, isExcluded }: Term): string {
  const phrase = parts.map(({ lexeme, offset, isPrefix }, index) => {
    const distance = index === 0 ? '' : ` <${offset - (parts[index - 1]?.offset ?? 0)}> `;
    const flags = `${isPrefix ? '*' : ''}${index === 0 ? 'D' : ''}`;
    return `${distance}'${lexeme}'${flags && `:${flags}`}`;
  });
  return `${isExcluded ? '!' : ''}(${phrase.join('')})`;
}

/** A part of a text, in UTF-16 code units. */
export interface Place {
  from: number;
  to: number;
}

/** The places in a text of what a query searches, in their order, none of which overlap. */
export function matchesIn(text: string, { terms }: SearchQuery): Place[] {
  const { normalized, places } = normalizedWithPlaces(text);
  const tokens = new Map([...tokensOf(normalized)].map((token) => [token.position, token]));
  const found = terms
    .filter(({ isExcluded }) => !isExcluded)
    .flatMap(({ parts }) => [...tokens.values()].flatMap((token) => spanAt(token, parts, tokens) ?? []))
    .map(({ start, end }): Place => ({ from: places[start] ?? 0, to: places[end] ?? text.length }))
    .sort((one, other) => one.from - other.from || other.to - one.to);
  return found.reduce<Place[]>((merged, place) => {
    const last = merged.at(-1);
    if (last && place.from < last.to) last.to = Math.max(last.to, place.to);
    else merged.push(place);
    return merged;
  }, []);
}

/** The part of the text in which a term begins with a token; undefined when it does not. */
function spanAt(
  { position, start }: Token,
  parts: readonly Part[],
  tokens: ReadonlyMap<number, Token>,
): { start: number; end: number } | undefined {
  let end = start;
  for (const { lexeme, offset, isPrefix, isSingle } of parts) {
    const token = tokens.get(position + offset);
    const isFound = isPrefix ? token?.lexeme.startsWith(lexeme) : token?.lexeme === lexeme;
    if (!token || !isFound) return undefined;
    end = isSingle ? token.firstEnd : token.end;
  }
  return { start, end };
}

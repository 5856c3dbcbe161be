/** The maximum number of languages of a call. */
export const LANGUAGES_MAX = 20;

/** Last in a list of languages: the original language of the video, when none before it is there. */
export const ORIGINAL_LANGUAGE = '*';

/** Whether all languages that a video has are wanted, or the first of them. */
export const LANGUAGE_MATCHES = ['all', 'first'] as const;
export type LanguageMatch = (typeof LANGUAGE_MATCHES)[number];

/** A BCP 47 code as YouTube writes it: groups of letters and digits, joined by hyphens. */
const LANGUAGE_CODE = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,4}$/;
/** Codes of small languages that callers mean as words: `*` is what they want. */
const WORDS = ['any', 'all'];

/** Whether a list has language codes only, and `*` only at its end. */
export function areLanguages(codes: readonly string[]): boolean {
  return codes.every((code, index) =>
    code === ORIGINAL_LANGUAGE
      ? index === codes.length - 1
      : LANGUAGE_CODE.test(code) && !WORDS.includes(code.toLowerCase()),
  );
}

const ALTERNATIVES = '|';

/** Which languages are wanted, as a request says it. By default the original one. */
export interface LanguageRequest {
  languages?: readonly string[] | null | undefined;
  match?: LanguageMatch | null | undefined;
}

/**
 * The languages as they are read and cached: each element is a code, or the alternatives of which the first is taken that the
 * video has. The original language alone is an empty list.
 */
export function languageChoice({ languages, match }: LanguageRequest): string[] {
  const codes = languages ?? [];
  if (codes.length === 0 || codes[0] === ORIGINAL_LANGUAGE) return [];
  return match === 'first' ? [codes.join(ALTERNATIVES)] : [...codes];
}

/** The codes of an element of a language choice. */
export function alternativesOf(element: string): string[] {
  return element.split(ALTERNATIVES);
}

/** The codes as they are part of the keys of cached transcripts: in lower case, because case does not matter, each once. */
export function normalizeLanguages(codes: readonly string[]): string[] {
  return [...new Set(codes.map((code) => code.toLowerCase()))];
}

/**
 * The code to compare languages by: the current one, in lower case, because old ones are still in use (`iw` is `he`, `in` is
 * `id`). A malformed code stays as it is.
 */
export function canonicalLanguage(code: string): string {
  try {
    // By Intl.getCanonicalLocales, `tw` stays and `TW` is `ak`: V8 does not look up every code of two lower-case letters.
    return new Intl.Locale(code).toString().toLowerCase();
  } catch {
    return code.toLowerCase();
  }
}

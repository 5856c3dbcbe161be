/** The maximum number of languages of a call. */
export const LANGUAGES_MAX = 20;

/** Last in a list of languages: the original language of the video, when none before it is there. */
export const ORIGINAL_LANGUAGE = '*';

/** Whether all languages that a video has are wanted, or the first of them. */
export const LANGUAGE_MATCHES = ['all', 'first'] as const;
export type LanguageMatch = (typeof LANGUAGE_MATCHES)[number];

/** Which tracks are wanted: manual before generated ones, or those of one origin. */
export const TRACK_CHOICES = ['any', 'manual', 'generated'] as const;
export type TrackChoice = (typeof TRACK_CHOICES)[number];

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
/** Neither is part of a code. */
const AFTER_ORIGIN = ':';

/** Which texts are wanted, as a request says it. By default the one in the original language. */
export interface LanguageRequest {
  languages?: readonly string[] | null | undefined;
  match?: LanguageMatch | null | undefined;
  tracks?: TrackChoice | null | undefined;
}

/**
 * The languages as they are read and cached: each element is a code, or the alternatives of which the first is taken that the
 * video has. The original language alone is an empty list. With tracks of one origin each element begins with it: `manual:en`.
 */
export function languageChoice({ languages, match, tracks }: LanguageRequest): string[] {
  const codes = languages ?? [];
  const isOriginal = codes.length === 0 || codes[0] === ORIGINAL_LANGUAGE;
  const wanted = isOriginal ? [] : match === 'first' ? [codes.join(ALTERNATIVES)] : [...codes];
  if ((tracks ?? 'any') === 'any') return wanted;
  return (isOriginal ? [ORIGINAL_LANGUAGE] : wanted).map((element) => `${tracks}${AFTER_ORIGIN}${element}`);
}

/** The codes of an element of a language choice, and the origin of its tracks. */
export function readElement(element: string): { tracks: TrackChoice; codes: string[] } {
  const [codes = '', origin] = element.split(AFTER_ORIGIN).reverse();
  const tracks = TRACK_CHOICES.find((choice) => choice === origin) ?? 'any';
  return { tracks, codes: codes.split(ALTERNATIVES) };
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

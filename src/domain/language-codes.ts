/** The maximum number of languages of a call. */
export const LANGUAGES_MAX = 20;

/** A BCP 47 code as YouTube writes it: groups of letters and digits, joined by hyphens. */
export const LANGUAGE_CODE = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/;

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
    return (Intl.getCanonicalLocales(code)[0] ?? code).toLowerCase();
  } catch {
    return code.toLowerCase();
  }
}

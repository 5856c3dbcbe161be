/** BCP 47 as the platform writes it: letters and digits in groups, joined by hyphens. */
const LANGUAGE = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$/;
const LANGUAGES_MAX = 20;

/**
 * Reads a list of language codes, separated by commas: in the caller's order, each once, in lower case, since letter case
 * does not tell codes apart. Null for anything else.
 */
export function readLanguages(value: unknown): string[] | null {
  if (typeof value !== 'string') return null;
  const languages = value.split(',');
  if (languages.length > LANGUAGES_MAX || !languages.every((language) => LANGUAGE.test(language))) return null;
  return [...new Set(languages.map((language) => language.toLowerCase()))];
}

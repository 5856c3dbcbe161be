import { type Client, CLIENTS, type Cue, type Track } from './model.js';
import { type Line, recognised, subtitled } from './speech.js';

const LANGUAGES = {
  en: 'English',
  'en-GB': 'English (United Kingdom)',
  de: 'German',
  fr: 'French',
  es: 'Spanish',
  pt: 'Portuguese',
  ar: 'Arabic',
  // The platform still uses the old code for Hebrew.
  iw: 'Hebrew',
  ja: 'Japanese',
  'zh-Hans': 'Chinese (Simplified)',
  'zh-Hant': 'Chinese (Traditional)',
} as const;

type LanguageCode = keyof typeof LANGUAGES;

/** Captions that the channel wrote. */
export function manual(languageCode: LanguageCode, lines: readonly Line[]): Track {
  return track(languageCode, () => subtitled(lines));
}

/** Captions made by speech recognition, rolling up two lines at a time. */
export function generated(languageCode: LanguageCode, lines: () => readonly string[]): Track {
  return { ...track(languageCode, () => recognised(lines())), generated: true };
}

/** Captions with times of their own. */
export function timed(languageCode: LanguageCode, cues: readonly Cue[]): Track {
  return track(languageCode, () => cues);
}

/** The same track, which these clients cannot read without a PO token, as its URL indicates (`exp=xpe`). */
export function needingToken(given: Track, clients: readonly Client[] = CLIENTS): Track {
  return { ...given, tokenNeed: { clients, announced: true } };
}

/** The same track, which returns an empty body to these clients although its URL does not indicate a PO token. */
export function silentlyNeedingToken(given: Track, clients: readonly Client[] = CLIENTS): Track {
  return { ...given, tokenNeed: { clients, announced: false } };
}

/** The same track, listed for WEB only. */
export function webOnly(given: Track): Track {
  return { ...given, webOnly: true };
}

function track(languageCode: LanguageCode, cues: () => readonly Cue[]): Track {
  return { languageCode, languageName: LANGUAGES[languageCode], cues };
}

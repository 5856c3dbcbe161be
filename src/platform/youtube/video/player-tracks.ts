import { canonicalLanguage, ORIGINAL_LANGUAGE, readElement } from '../../../domain/language-codes.js';
import type { CaptionTrack } from '../../../domain/transcript.js';
import { asArray, asCount, asString, at, isObject, textOf, UnreadableError } from '../response-parsing.js';

/** A caption track and the URL of its text. */
export interface PlayerTrack {
  /** Signed, absolute and unchecked: check its host against the allow-list before fetching it. */
  baseUrl: string;
  /** The URL requires a PO token (`exp=xpe` or `xpv`): without one the response is empty. */
  needsToken: boolean;
  /** `track.languageCode` in the form that is compared. */
  canonicalCode: string;
  track: CaptionTrack;
}

/** The video's original language according to the platform. */
export interface TrackDefaults {
  /** The track that the platform shows by default with the original audio. */
  defaultTrack: PlayerTrack | null;
  /** Language of the original audio, e.g. `en`, if the audio tracks state it. */
  audioLanguage: string | null;
}

/**
 * Reads the caption tracks of a player response's `captions`; empty when it lists none. An unreadable track is skipped, and so
 * is a forced track (signs and foreign passages only) beside another one of its language.
 *
 * @throws UnreadableError when none of the tracks can be read, or the list has another shape: neither may be reported as a
 *   video without captions
 */
export function readTracks(captions: unknown): { tracks: PlayerTrack[]; defaults: TrackDefaults } {
  const list = at(captions, 'playerCaptionsTracklistRenderer');
  if (!isObject(list)) throw new UnreadableError('a list of caption tracks');
  const listed = list['captionTracks'] === undefined ? [] : list['captionTracks'];
  if (!Array.isArray(listed)) throw new UnreadableError('caption tracks in a list');
  if (listed.length === 0 && namesTracks(list)) throw new UnreadableError('the caption tracks that the audio names');
  const read = (listed as readonly unknown[]).map(readTrack);
  const readable = read.filter((track) => track !== null);
  if (readable.length === 0 && listed.length > 0) throw new UnreadableError('one readable caption track');
  const full = new Set(readable.filter(({ forced }) => !forced).map(({ canonicalCode }) => baseOf(canonicalCode)));
  const tracks = readable.filter(({ forced, canonicalCode }) => !forced || !full.has(baseOf(canonicalCode)));
  return { tracks, defaults: readDefaults(list, read) };
}

/** Whether an audio track refers to caption tracks, which then must be somewhere. */
function namesTracks(list: unknown): boolean {
  return asArray(at(list, 'audioTracks')).some((audio) => asArray(at(audio, 'captionTrackIndices')).length > 0);
}

function baseOf(canonicalCode: string): string {
  const [base = ''] = canonicalCode.split('-', 1);
  return base;
}

function readTrack(track: unknown): (PlayerTrack & { forced: boolean }) | null {
  const url = asString(at(track, 'baseUrl'));
  const languageCode = asString(at(track, 'languageCode'));
  // A translated text has `tlang` in its address; it is never offered as a track of the video.
  if (url === null || languageCode === null || languageCode.length > LANGUAGE_CODE_LENGTH_MAX) return null;
  if (/[?&]tlang=/.test(url)) return null;
  const baseUrl = url.startsWith('/') && !url.startsWith('//') ? `https://www.youtube.com${url}` : url;
  const kind = at(track, 'kind');
  const generated = kind === 'asr' || (asString(at(track, 'vssId')) ?? '').startsWith('a.');
  const name = textOf(at(track, 'name')) ?? languageCode;
  const canonicalCode = canonicalLanguage(languageCode);
  const caption = { languageCode, name, generated };
  return { baseUrl, needsToken: NEEDS_TOKEN.test(url), canonicalCode, track: caption, forced: kind === 'frc' };
}

/** Judged per track: one response mixes both kinds (seen June 2025). */
// A parameter has no second `?`; were one allowed, the time would be quadratic in the number of them.
const NEEDS_TOKEN = /[?&]exp=[^?&#]*xp[ev]/;

/** Codes have a dozen characters at the most; each is compared with every other one. */
const LANGUAGE_CODE_LENGTH_MAX = 64;

/** `read` has the tracks at the places that the platform's indices mean, null for an unreadable one. */
function readDefaults(list: unknown, read: readonly (PlayerTrack | null)[]): TrackDefaults {
  const audioTracks = asArray(at(list, 'audioTracks'));
  const original = audioTracks.find((audio) => languageOfOriginal(audio) !== null);
  const audio = original ?? audioTracks[asCount(at(list, 'defaultAudioTrackIndex')) ?? 0];
  const index =
    asCount(at(audio, 'defaultCaptionTrackIndex')) ?? asCount(at(list, 'defaultTranslationSourceTrackIndices', 0));
  return {
    defaultTrack: (index === null ? null : read[index]) ?? null,
    audioLanguage: original === undefined ? null : languageOfOriginal(original),
  };
}

/** `en.4` is the original audio in English; dubbed audio tracks end in `.3` or `.10` (seen June 2026). */
function languageOfOriginal(audioTrack: unknown): string | null {
  const [, language] =
    /^([A-Za-z]{2,3}(?:-[A-Za-z0-9-]{1,20})?)\.4$/.exec(asString(at(audioTrack, 'audioTrackId')) ?? '') ?? [];
  return language === undefined || language === 'und' ? null : language;
}

/**
 * Chooses the tracks to fetch, a manual one before a generated one of the same language: in the order of the languages, each
 * track and each language code at most once. Empty when the video has none of them.
 *
 * @param languages empty: one track, in the video's original language; else each listed language that the video has,
 *   its code matched exactly, then in its canonical form (`he` finds `iw`), then by prefix (`en` finds `en-GB`); of the
 *   alternatives of an element the first that it has; `*` only when none before it is there. Of one origin only where an
 *   element says so
 */
export function selectTracks(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  languages: readonly string[],
): PlayerTrack[] {
  const chosen = new Set<PlayerTrack>();
  for (const element of languages.length === 0 ? [ORIGINAL_LANGUAGE] : languages) {
    const { codes, tracks: origin } = readElement(element);
    const isWanted = ({ track }: PlayerTrack) => origin === 'any' || track.generated === (origin === 'generated');
    for (const code of codes) {
      if (code === ORIGINAL_LANGUAGE && chosen.size > 0) continue;
      const track =
        code === ORIGINAL_LANGUAGE
          ? chooseOriginal(tracks, defaults, isWanted)
          : chooseNamed(tracks.filter(isWanted), defaults, code);
      if (track === undefined) continue;
      chosen.add(track);
      break;
    }
  }
  return [...chosen];
}

function chooseNamed(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  language: string,
): PlayerTrack | undefined {
  const code = canonicalLanguage(language);
  const named = tracks.filter((track) => hasPrefix(track, code));
  return best(named, isExactly(language), isCanonically(code), isManual, isDefault(defaults));
}

/**
 * The original language is that of the original audio track, or (most videos have one unnamed audio track) the language of
 * speech recognition, or that of the platform's default track. A manual track in any variant of it goes before a generated one.
 *
 * @param isWanted selects among the tracks in that language; all of them tell which it is
 */
function chooseOriginal(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  isWanted: (track: PlayerTrack) => boolean,
): PlayerTrack | undefined {
  const { audioLanguage, defaultTrack } = defaults;
  const recognized = new Set(tracks.flatMap(({ track, canonicalCode }) => (track.generated ? [canonicalCode] : [])));
  // Dubbed audio tracks are recognized too: several languages identify none as the original.
  const spoken = recognized.size === 1 ? [...recognized] : [];
  const hints = [audioLanguage, ...spoken, defaultTrack?.track.languageCode].filter((hint) => typeof hint === 'string');
  for (const code of hints.map(canonicalLanguage)) {
    const related = tracks.filter((track) => hasPrefix(track, baseOf(code)));
    if (related.length > 0) return best(related.filter(isWanted), isManual, isCanonically(code), isDefault(defaults));
  }
  return best(tracks.filter(isWanted), isManual);
}

/** The first of the tracks that meet the conditions, of which an earlier one counts more than all later ones. */
function best(
  tracks: readonly PlayerTrack[],
  ...conditions: ((track: PlayerTrack) => boolean)[]
): PlayerTrack | undefined {
  let candidates = tracks;
  for (const condition of conditions) {
    const met = candidates.filter(condition);
    if (met.length > 0) candidates = met;
  }
  return candidates[0];
}

function isManual({ track }: PlayerTrack): boolean {
  return !track.generated;
}

function isExactly(language: string): (track: PlayerTrack) => boolean {
  return ({ track }) => track.languageCode.toLowerCase() === language.toLowerCase();
}

function isCanonically(code: string): (track: PlayerTrack) => boolean {
  return ({ canonicalCode }) => canonicalCode === code;
}

function isDefault({ defaultTrack }: TrackDefaults): (track: PlayerTrack) => boolean {
  return (track) => track === defaultTrack;
}

/** Whether a track is in the language or a variant of it. */
function hasPrefix({ canonicalCode }: PlayerTrack, code: string): boolean {
  return `${canonicalCode}-`.startsWith(`${code}-`);
}

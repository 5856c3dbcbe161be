import type { CaptionTrack } from '../../../domain/transcript.js';
import { asArray, asCount, asString, at, isObject, textOf, UnreadableError } from '../response-parsing.js';

/** A caption track and the URL of its text. */
export interface PlayerTrack {
  /** Signed, absolute and unchecked: check its host against the allow-list before fetching it. */
  baseUrl: string;
  /** The URL requires a PO token (`exp=xpe` or `xpv`): without one the response is empty. */
  needsToken: boolean;
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
 * Reads the caption tracks of a player response's `captions`; empty when it lists none. An unreadable track is skipped.
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
  const tracks = read.filter((track) => track !== null);
  if (tracks.length === 0 && listed.length > 0) throw new UnreadableError('one readable caption track');
  return { tracks, defaults: readDefaults(list, read) };
}

/** Whether an audio track refers to caption tracks, which then must be somewhere. */
function namesTracks(list: unknown): boolean {
  return asArray(at(list, 'audioTracks')).some((audio) => asArray(at(audio, 'captionTrackIndices')).length > 0);
}

function readTrack(track: unknown): PlayerTrack | null {
  const url = asString(at(track, 'baseUrl'));
  const languageCode = asString(at(track, 'languageCode'));
  // A translated text has `tlang` in its address; it is never offered as a track of the video.
  if (url === null || languageCode === null || languageCode.length > LANGUAGE_CODE_LENGTH_MAX) return null;
  if (/[?&]tlang=/.test(url)) return null;
  const baseUrl = url.startsWith('/') && !url.startsWith('//') ? `https://www.youtube.com${url}` : url;
  const generated = at(track, 'kind') === 'asr' || (asString(at(track, 'vssId')) ?? '').startsWith('a.');
  const name = textOf(at(track, 'name')) ?? languageCode;
  return { baseUrl, needsToken: NEEDS_TOKEN.test(url), track: { languageCode, name, generated } };
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

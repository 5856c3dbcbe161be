import type { PlayerTrack, TrackDefaults } from './player-tracks.js';

type TrackSelection =
  /** In the order of the requested languages, never empty; each language code and each track at most once. */
  | { chosen: PlayerTrack[] }
  /** `available`: the video's distinct language codes, in the platform's order. */
  | { none: 'language_unavailable'; available: string[] };

/**
 * Chooses the tracks to fetch, a manual one before a generated one of the same language.
 *
 * @param languages empty: one track, in the video's original language; else each listed language that the video has,
 *   its code matched exactly and then by prefix (`en` finds `en-GB`)
 */
export function selectTracks(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  languages: readonly string[],
): TrackSelection {
  const chosen = new Set<PlayerTrack>();
  if (languages.length === 0) {
    const original = chooseOriginal(tracks, defaults);
    if (original !== undefined) chosen.add(original);
  }
  for (const language of languages) {
    const track = chooseLanguage(tracks, defaults, language);
    if (track !== undefined) chosen.add(track);
  }
  if (chosen.size > 0) return { chosen: [...chosen] };
  return { none: 'language_unavailable', available: [...new Set(tracks.map(({ track }) => track.languageCode))] };
}

/**
 * The original language is that of the original audio track, or (most videos have one unnamed audio track) the language of
 * speech recognition, or that of the platform's default track.
 */
function chooseOriginal(tracks: readonly PlayerTrack[], defaults: TrackDefaults): PlayerTrack | undefined {
  const recognized = new Set(tracks.filter(({ track }) => track.generated).map(({ track }) => track.languageCode));
  const hints = [
    defaults.audioLanguage,
    // Dubbed audio tracks are recognized too: several languages identify none as the original.
    recognized.size === 1 ? [...recognized][0] : undefined,
    defaults.defaultTrack?.track.languageCode,
  ];
  for (const hint of hints) {
    const track = typeof hint === 'string' ? chooseRelated(tracks, defaults, hint) : undefined;
    if (track !== undefined) return track;
  }
  return tracks.find(({ track }) => !track.generated) ?? tracks[0];
}

/** A track in any variant of the language: manual tracks first, and among them the exact variant. */
function chooseRelated(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  language: string,
): PlayerTrack | undefined {
  const related = tracks.filter(({ track }) => baseOf(track.languageCode) === baseOf(language));
  const manual = related.filter(({ track }) => !track.generated);
  const candidates = manual.length > 0 ? manual : related;
  const exact = candidates.filter(({ track }) => sameCode(track.languageCode, language));
  return best(exact.length > 0 ? exact : candidates, defaults);
}

/** Chooses one track per language code, so that no code is chosen twice. */
function chooseLanguage(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  language: string,
): PlayerTrack | undefined {
  const exact = best(
    tracks.filter(({ track }) => sameCode(track.languageCode, language)),
    defaults,
  );
  const prefix = `${language.toLowerCase()}-`;
  const variant = best(
    tracks.filter(({ track }) => track.languageCode.toLowerCase().startsWith(prefix)),
    defaults,
  );
  return exact ?? variant;
}

function best(candidates: readonly PlayerTrack[], { defaultTrack }: TrackDefaults): PlayerTrack | undefined {
  const manual = candidates.filter(({ track }) => !track.generated);
  const preferred = manual.length > 0 ? manual : candidates;
  return defaultTrack !== null && preferred.includes(defaultTrack) ? defaultTrack : preferred[0];
}

function sameCode(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

function baseOf(languageCode: string): string {
  return languageCode.toLowerCase().split('-', 1)[0] ?? '';
}

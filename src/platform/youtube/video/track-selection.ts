import type { PlayerTrack, TrackDefaults } from './player-tracks.js';

/**
 * Chooses the tracks to fetch, a manual one before a generated one of the same language: in the order of the languages, each
 * track and each language code at most once. Empty when the video has none of them.
 *
 * @param languages empty: one track, in the video's original language; else each listed language that the video has,
 *   its code matched exactly and then by prefix (`en` finds `en-GB`)
 */
export function selectTracks(
  tracks: readonly PlayerTrack[],
  defaults: TrackDefaults,
  languages: readonly string[],
): PlayerTrack[] {
  const chosen =
    languages.length === 0
      ? [chooseOriginal(tracks, defaults)]
      : languages.map((language) => chooseLanguage(tracks, defaults, language));
  return [...new Set(chosen)].filter((track) => track !== undefined);
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

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
      : languages.map((language) => {
          const named = tracks.filter(({ track }) => hasPrefix(track.languageCode, language));
          return best(named, isExactly(language), isManual, isDefault(defaults));
        });
  return [...new Set(chosen)].filter((track) => track !== undefined);
}

/**
 * The original language is that of the original audio track, or (most videos have one unnamed audio track) the language of
 * speech recognition, or that of the platform's default track. A manual track in any variant of it goes before a generated one.
 */
function chooseOriginal(tracks: readonly PlayerTrack[], defaults: TrackDefaults): PlayerTrack | undefined {
  const { audioLanguage, defaultTrack } = defaults;
  const recognized = new Set(tracks.filter(({ track }) => track.generated).map(({ track }) => track.languageCode));
  // Dubbed audio tracks are recognized too: several languages identify none as the original.
  const spoken = recognized.size === 1 ? [...recognized] : [];
  const hints = [audioLanguage, ...spoken, defaultTrack?.track.languageCode].filter((hint) => typeof hint === 'string');
  for (const language of hints) {
    const [base = ''] = language.split('-', 1);
    const related = tracks.filter(({ track }) => hasPrefix(track.languageCode, base));
    if (related.length > 0) return best(related, isManual, isExactly(language), isDefault(defaults));
  }
  return best(tracks, isManual);
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

function isDefault({ defaultTrack }: TrackDefaults): (track: PlayerTrack) => boolean {
  return (track) => track === defaultTrack;
}

/** Whether a code is the language or a variant of it. */
function hasPrefix(languageCode: string, language: string): boolean {
  return `${languageCode}-`.toLowerCase().startsWith(`${language}-`.toLowerCase());
}

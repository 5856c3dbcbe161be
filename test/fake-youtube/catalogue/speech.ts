import { type Cue, type Run } from './model.js';
import { pick, seededRandom } from './random.js';

/** Approximate reading time. */
const CHARACTERS_PER_SECOND = 15;
const LINE_MS_MIN = 1_200;
const PAUSE_MS = 180;
/** Recognised speech stays on screen while the next line rolls in. */
const ROLL_UP_OVERLAP_MS = 1_900;

export function italic(text: string): Run {
  return { text, italic: true };
}

export function coloured(text: string, colour: string): Run {
  return { text, colour };
}

/** A line of a script: plain text, styled pieces, or a line with a quirk in its timing. */
export type Line = string | readonly (string | Run)[];

/** Assigns consecutive times to the lines of a script, as in manual subtitles. */
export function subtitled(lines: readonly Line[], startMs = 240): Cue[] {
  let atMs = startMs;
  return lines.map((line) => {
    const runs = (typeof line === 'string' ? [line] : line).map((run) =>
      typeof run === 'string' ? { text: run } : run,
    );
    const length = runs.reduce((sum, run) => sum + run.text.length, 0);
    const durationMs = Math.max(LINE_MS_MIN, Math.round((length / CHARACTERS_PER_SECOND) * 1_000));
    const cue = { startMs: atMs, durationMs, runs };
    atMs += durationMs + PAUSE_MS;
    return cue;
  });
}

/** The same lines as recognised speech: lower case, without punctuation, each overlapping the next. */
export function recognised(lines: readonly string[], startMs = 80): Cue[] {
  return subtitled(lines.map(generatedText), startMs).map((cue) => ({
    ...cue,
    durationMs: (cue.durationMs ?? LINE_MS_MIN) + ROLL_UP_OVERLAP_MS,
  }));
}

function generatedText(line: string): string {
  return line
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}'’ -]/gu, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

const WORDS = (
  'so we are going out past the breakwater this morning and the wind is steady from the west you can hear the halyards ' +
  'tapping on the masts what I like about this old boat is how the planks take up water and close the seams by themselves ' +
  'let me show you the stem here it was oak once and somebody put in a piece of larch after the storm now hold the plane ' +
  'flat keep your thumb behind the iron and let it sing the tide turns at four so there is time for tea before the fog ' +
  'comes back over the point and the light begins to swing again'
).split(' ');

/** Lines of plausible talk about boats, the same for the same seed. */
export function talk(seed: number, count: number, wordsPerLine = 7): string[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => Array.from({ length: wordsPerLine }, () => pick(random, WORDS)).join(' '));
}

const NOISE_CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const NOISE_LINE_CHARACTERS = 300;
/** Number of different lines: they repeat far beyond the 32 KB window of deflate. */
const NOISE_LINES = 400;

/** Lines of random characters, which hardly compress, the same for the same seed. */
export function noise(seed: number, count: number): string[] {
  const random = seededRandom(seed);
  const character = (): string => NOISE_CHARACTERS.charAt(Math.floor(random() * NOISE_CHARACTERS.length));
  const lines = Array.from({ length: Math.min(count, NOISE_LINES) }, () =>
    Array.from({ length: NOISE_LINE_CHARACTERS }, character).join(''),
  );
  return Array.from({ length: count }, (_, index) => lines[index % NOISE_LINES] ?? '');
}

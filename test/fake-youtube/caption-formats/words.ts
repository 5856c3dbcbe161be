/** A word of recognised speech, with the space before it, and when it is said within its line. */
export interface Word {
  text: string;
  offsetMs: number;
}

/** Spreads the words of a line over the time in which it is spoken. */
export function wordsOf(line: string, durationMs: number): Word[] {
  const words = line.split(/(?= )/);
  const eachMs = Math.floor(durationMs / (words.length + 1));
  return words.map((text, index) => ({ text, offsetMs: index * eachMs }));
}

/** When the next line pushes this one up: the moment before it starts. */
export function rollsUpAtMs(startMs: number, durationMs: number, nextStartMs: number | undefined): number {
  return nextStartMs === undefined ? startMs + durationMs : nextStartMs - 10;
}

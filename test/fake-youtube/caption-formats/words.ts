/** A word of recognised speech, with the space before it, and its offset within the line. */
interface Word {
  text: string;
  offsetMs: number;
}

/** Distributes the words of a line over its duration. */
export function wordsOf(line: string, durationMs: number): Word[] {
  const words = line.split(/(?= )/);
  const eachMs = Math.floor(durationMs / (words.length + 1));
  return words.map((text, index) => ({ text, offsetMs: index * eachMs }));
}

/** When the next line rolls in: just before it starts. */
export function rollsUpAtMs(startMs: number, durationMs: number, nextStartMs: number | undefined): number {
  return nextStartMs === undefined ? startMs + durationMs : nextStartMs - 10;
}

// In a test file a global is looked up by name each time, which takes as long as the rest of a call.
const { floor, imul } = Math;

/** A seeded generator of numbers from 0 up to 1 (mulberry32): the same seed gives the same sequence on every machine. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A seed from a text (FNV-1a). */
export function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return hash >>> 0;
}

export function pick<T>(random: () => number, from: readonly T[]): T {
  const item = from[floor(random() * from.length)];
  if (item === undefined) throw new Error('Nothing to pick from');
  return item;
}

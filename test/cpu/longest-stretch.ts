/** The most work between two turns of the event loop. */
export interface Stretch {
  /** Lines of text that were read, some of them twice. */
  lines: number;
  /** Characters of JSON that were parsed or written. */
  json: number;
}

/**
 * Runs work, and adds up what it does between two turns of the event loop, as shares of the most of each kind that it may do: a
 * count does not depend on the machine.
 *
 * @param work also gets the function that counts, for what is not counted otherwise
 * @returns the longest stretch: up to 1 is within the most
 */
export async function longestStretch(
  most: Stretch,
  work: (count: (what: keyof Stretch, by: number) => void) => Promise<unknown>,
): Promise<number> {
  let [longest, since] = [0, 0];
  const count = (what: keyof Stretch, by: number): void => {
    since += by / most[what];
    longest = Math.max(longest, since);
  };
  // Each line that is read passes through it, and all JSON through these. A mock would keep every call.
  const toWellFormed: (this: string) => string = Reflect.get(String.prototype, 'toWellFormed');
  const { parse, stringify } = JSON;
  const restored = [
    replaced(String.prototype, 'toWellFormed', function (this: string) {
      count('lines', 1);
      return toWellFormed.call(this);
    }),
    replaced(JSON, 'parse', (text: string): unknown => {
      count('json', text.length);
      return parse(text) as unknown;
    }),
    replaced(JSON, 'stringify', (value: unknown) => {
      const text = stringify(value);
      count('json', text.length);
      return text;
    }),
  ];
  let ended = false;
  const turn = (): void => {
    since = 0;
    if (!ended) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work(count);
  } finally {
    ended = true;
    for (const restore of restored) restore();
  }
  return longest;
}

function replaced(target: object, name: string, value: unknown): () => void {
  const original = Object.getOwnPropertyDescriptor(target, name);
  if (!original) throw new Error(`There is no ${name}.`);
  Object.defineProperty(target, name, { ...original, value });
  return () => void Object.defineProperty(target, name, original);
}

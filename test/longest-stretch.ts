import { jest } from '@jest/globals';

/** The most work between two turns of the event loop. */
export interface Stretch {
  /** Lines of text that were read, some of them twice. */
  lines: number;
  /** Characters of JSON that were parsed or written in one step. */
  json: number;
}

/** Runs work, and counts what it does between two turns of the event loop: a count does not depend on the machine. */
export async function longestStretch(work: () => Promise<unknown>): Promise<Stretch> {
  const longest = { lines: 0, json: 0 };
  let lines = 0;
  let json = 0;
  const spies = [
    jest.spyOn(String.prototype, 'toWellFormed').mockImplementation(function (this: string) {
      longest.lines = Math.max(longest.lines, ++lines);
      return this.replace(LONE_SURROGATES, '\ufffd');
    }),
    spyOnJson('parse', (text) => text.length),
    spyOnJson('stringify', (_value, written) => written.length),
  ];
  function spyOnJson(name: 'parse' | 'stringify', lengthOf: (given: string, result: string) => number) {
    const real = JSON[name].bind(JSON) as (given: string) => string;
    return jest.spyOn(JSON, name).mockImplementation((given: string) => {
      const result = real(given);
      json += lengthOf(given, result);
      longest.json = Math.max(longest.json, json);
      return result;
    });
  }
  let ended = false;
  const turn = (): void => {
    [lines, json] = [0, 0];
    if (!ended) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
  } finally {
    ended = true;
    for (const spy of spies) spy.mockRestore();
  }
  return longest;
}

const LONE_SURROGATES = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

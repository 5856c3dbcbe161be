import { setImmediate as turn } from 'node:timers/promises';

/** Characters of text that are processed at a stretch, before the other work of the process has its turn. */
export const CHARACTERS_PER_TURN = 32 * 1024;
/** What a step costs beside its characters. */
const CHARACTERS_PER_STEP = 64;

/**
 * Takes the steps of long work with turns for other work between them, and one at the end: work on texts that are cached
 * would otherwise hold the event loop from the first text to the last.
 */
export async function* inTurns<T>(steps: Iterable<T>): AsyncGenerator<T, void, undefined> {
  let characters = 0;
  for (const step of steps) {
    yield step;
    characters += CHARACTERS_PER_STEP + (typeof step === 'string' ? step.length : 0);
    if (characters < CHARACTERS_PER_TURN) continue;
    characters = 0;
    await turn();
  }
  await turn();
}

/** Joins the pieces of a text in turns. */
export async function joinInTurns(pieces: Iterable<string>): Promise<string> {
  let text = '';
  for await (const piece of inTurns(pieces)) text += piece;
  return text;
}

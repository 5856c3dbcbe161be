import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** The number of objects, referenced only from here, that survive a garbage collection. */
export async function countHeld(references: readonly WeakRef<object>[]): Promise<number> {
  // What was read in this turn lives until its end.
  await nextTurn();
  collect();
  return references.filter((reference) => reference.deref() !== undefined).length;
}

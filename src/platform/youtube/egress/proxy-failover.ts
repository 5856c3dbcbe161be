import type { ReadingContext } from '../../video-platform.js';
import type { Admission } from './circuit-breaker.js';
import type { Exit, Exits, ExitUse } from './egress-pool.js';

/** How many exits a piece of work is tried through. */
const EXITS_PER_WORK_MAX = 3;

/**
 * What a try says about its exit. `refused`: the platform does not want it. `unreached`: nothing came back through it.
 * Both send the work to another exit. `withheld`: texts came empty, which is a block of the exit when it happens to one
 * video after another, and the video's own otherwise; so it is counted, and the work ends. `nothing`: no sign of either.
 */
export const FINDINGS = ['answered', 'refused', 'withheld', 'unreached', 'nothing'] as const;
export type Finding = (typeof FINDINGS)[number];

/** What one try through one exit brought. */
export interface Attempt<T> {
  result: T;
  finding: Finding;
  /** For how long the platform asked to be left alone, if it said so. */
  retryAfterSeconds: number | null;
}

/**
 * Does a piece of work through one exit, and from the start through another one when the first is of no use: visitor
 * data, player and caption URL belong together and to one exit.
 *
 * @param subject what is read; the same subject refused again and again is no sign of a blocked exit
 * @returns the last result, one that was refused before one that did not get through; null when every exit is shut
 */
export async function throughExits<T>(
  exits: Exits,
  use: ExitUse,
  subject: string,
  context: ReadingContext,
  attempt: (exit: Exit, admission: Admission) => Promise<Attempt<T>>,
): Promise<T | null> {
  const tried = new Set<Exit>();
  let best: Attempt<T> | null = null;
  while (tried.size < EXITS_PER_WORK_MAX) {
    context.signal.throwIfAborted();
    const taken = exits.take(use, tried);
    if (!taken) break;
    tried.add(taken.exit);
    try {
      const made = await attempt(taken.exit, taken.admission);
      exits.note(taken.exit, use, made.finding);
      if (made.finding === 'answered') taken.admission.answered();
      if (made.finding === 'refused' || made.finding === 'withheld') taken.admission.blocked(subject);
      if (made.finding !== 'refused' && made.finding !== 'unreached') return made.result;
      exits.rest(taken.exit, made.retryAfterSeconds);
      if (best?.finding !== 'refused') best = made;
    } finally {
      // Whatever happened: an admission that is never ended would keep a shut exit shut.
      taken.admission.left();
    }
  }
  return best?.result ?? null;
}

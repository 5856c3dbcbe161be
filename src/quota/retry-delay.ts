const FIRST_MS = 100;
const MAX_MS = 5_000;

/** How long to wait after the given attempt (1 is the first): doubling, with half of it random, 5 seconds at most. */
export function retryDelayMs(attempt: number, random: () => number = Math.random): number {
  const fullMs = Math.min(MAX_MS, FIRST_MS * 2 ** (attempt - 1));
  return Math.round(fullMs / 2 + (fullMs / 2) * random());
}

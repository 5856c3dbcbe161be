const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The pauses after the first, second, … failed attempt; together about a day. */
const PAUSES_SECONDS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 7 * HOUR, 9 * HOUR] as const;

/** The share of a pause that is random, so that deliveries that failed together are not repeated together. */
const JITTER = 0.2;

/** The attempts of a delivery until it is given up. */
export const ATTEMPTS_MAX = PAUSES_SECONDS.length + 1;

/**
 * Seconds until the next attempt, 10% less or more than the schedule; undefined when the delivery is given up.
 *
 * @param attempts the attempts so far, from 1
 */
export function pauseSeconds(attempts: number, random: () => number = Math.random): number | undefined {
  const pause = PAUSES_SECONDS[attempts - 1];
  return pause === undefined ? undefined : pause * (1 - JITTER / 2 + JITTER * random());
}

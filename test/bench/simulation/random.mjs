/** Random numbers that are the same for the same seed (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Waits between calls that arrive independently of one another: exponential, of this mean. */
export function exponential(random, mean) {
  return -Math.log(1 - random()) * mean;
}

/** Round trips: most near the median, some much longer. `sigma` is the spread of the logarithm; 0 makes all alike. */
export function logNormal(random, median, sigma) {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(sigma * normal);
}

/** Random arrival times within a duration, with an average rate per second. */
export function arrivalsAtRandom(random, perSecond, seconds) {
  const arrivals = [];
  for (let at = exponential(random, 1 / perSecond); at < seconds; at += exponential(random, 1 / perSecond)) {
    arrivals.push(at);
  }
  return arrivals;
}

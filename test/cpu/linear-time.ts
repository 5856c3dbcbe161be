/** Smallest input that is measured, and the ratio of one size to the next, in characters or elements. */
const SIZE_MIN = 1_024;
const STEP = 8;
/** Shorter times are noise: garbage collection and compilation cost as much. */
const FLOOR_MS = 6;
/** Linear work grows by 8 from one size to the next, quadratic work by 64. */
const GROWTH_MAX = 30;
const ATTEMPTS_MAX = 6;
/** A shorter first run may be that of code that is not compiled yet, by which the next size would be judged too kindly. */
const COLD_MS_MAX = 100;

/**
 * Runs work on inputs of growing size. Returns the size at which its CPU time grew faster than linear work does, or undefined
 * when it never did up to `sizeMax`.
 *
 * It stops early when the time is so short that even quadratic growth would stay below the limit at `sizeMax`: cheap work
 * is measured on a small input only, and work that would fail at `sizeMax` is still measured there.
 *
 * @param prepare builds an input, which is not measured, and returns the work on it
 */
export function superLinearGrowth(prepare: (size: number) => () => void, sizeMax: number): string | undefined {
  let limitMs = 0;
  for (let size = SIZE_MIN; size <= sizeMax; size *= STEP) {
    const quadraticGrowth = (sizeMax / size) ** 2;
    const harmlessMs = (GROWTH_MAX * FLOOR_MS) / quadraticGrowth;
    const work = prepare(size);
    // Other work on the machine can only lengthen a run, so one below the limit settles it.
    let fastestMs = Number.POSITIVE_INFINITY;
    const isSettled = (attempt: number) => fastestMs <= limitMs && !(attempt === 1 && fastestMs < COLD_MS_MAX);
    for (let attempt = 0; attempt < ATTEMPTS_MAX && !isSettled(attempt); attempt++) {
      fastestMs = Math.min(fastestMs, cpuMs(work));
      if (limitMs === 0 && fastestMs < FLOOR_MS) break;
    }
    if (limitMs > 0 && fastestMs > limitMs) {
      return `${fastestMs.toFixed(1)} ms for ${size}, more than ${limitMs.toFixed(1)} ms`;
    }
    if (fastestMs < harmlessMs) return undefined;
    limitMs = GROWTH_MAX * Math.max(FLOOR_MS, fastestMs);
  }
  return undefined;
}

/** CPU time of this process, which other processes on the machine do not lengthen. */
function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** A robust slope through samples: the median of the slopes between every two (Theil and Sen). */
export function slopeOf(samples: readonly { at: number; value: number }[]): number {
  const slopes = samples.flatMap((one, index) =>
    samples
      .slice(index + 1)
      .flatMap((other) => (other.at > one.at ? [(other.value - one.value) / (other.at - one.at)] : [])),
  );
  return medianOf(slopes);
}

export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]];
  return (low + high) / 2;
}

/** The spread of values around their median: 1.48 times the median absolute deviation, the standard deviation of a normal distribution. */
export function spreadOf(values: readonly number[]): number {
  const median = medianOf(values);
  return 1.48 * medianOf(values.map((value) => Math.abs(value - median)));
}

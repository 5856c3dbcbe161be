export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of each named figure over several runs. */
export function medians(runs) {
  const names = Object.keys(runs[0] ?? {}).filter((name) => typeof runs[0][name] === 'number');
  return Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]))]));
}

/** A goal and its result; `atMost` or `atLeast` gives the direction. A value that is not a number was not measured. */
export function goal(what, value, { atMost, atLeast, unit = '' }) {
  const met = atMost === undefined ? value >= atLeast : value <= atMost;
  const bound = atMost === undefined ? `at least ${atLeast}${unit}` : `at most ${atMost}${unit}`;
  return { what, value, unit, bound, result: Number.isNaN(value) ? 'not measured' : met ? 'met' : 'missed' };
}

/** The value that a share of the values does not exceed. */
export function percentile(values, share) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * share) - 1];
}

import type { Check } from '../../chaos-run.js';
import { medianOf, slopeOf, spreadOf } from './slope.js';

/** The share of the run in which memory and caches fill, which is excluded. */
const WARM_UP_SHARE = 0.3;
/** The allowed increase over the measured time: this share of the value, or three times its noise. */
const RISE_SHARE_MAX = 0.1;
/** Resident memory follows the heap late and in large steps. */
const RISE_SHARE_MAX_RESIDENT = 0.15;
const NOISE_TIMES = 3;
/** Allows for other work on the machine. */
const LATENCY_RISE_MS = 100;

export interface Sample {
  at: number;
  process: number;
  heapMegabytes: number;
  rssMegabytes: number;
  sockets: number;
}

/** The resources of a process over time. @param long whether the load was long enough to check the slope */
export function processFlat(name: string, samples: readonly Sample[], seconds: number, long: boolean): Check[] {
  // A few seconds are too short for a slope.
  const least = long ? 0 : Number.POSITIVE_INFINITY;
  const of = (value: (sample: Sample) => number) => samples.map((sample) => ({ at: sample.at, value: value(sample) }));
  return [
    flat(
      `${name}: heap and buffers`,
      of(({ heapMegabytes }) => heapMegabytes),
      seconds,
      'MB',
      least,
    ),
    flat(
      `${name}: resident memory`,
      of(({ rssMegabytes }) => rssMegabytes),
      seconds,
      'MB',
      least,
      RISE_SHARE_MAX_RESIDENT,
    ),
    flat(
      `${name}: sockets`,
      of(({ sockets }) => sockets),
      seconds,
      'open',
      Math.max(1, least),
    ),
  ];
}

/** The response time of cached calls, from samples of seconds and milliseconds. */
export function latencyFlat(samples: readonly { at: number; value: number }[], seconds: number, long: boolean): Check {
  return flat('Duration of a cached call', samples, seconds, 'ms', long ? LATENCY_RISE_MS : Number.POSITIVE_INFINITY);
}

/** The extrapolated increase of a value over the measured time, compared with its level and its noise. */
function flat(
  name: string,
  samples: readonly { at: number; value: number }[],
  seconds: number,
  unit: string,
  leastRise: number,
  riseShareMax = RISE_SHARE_MAX,
): Check {
  const from = seconds * WARM_UP_SHARE;
  const measured = samples.filter((sample) => sample.at >= from);
  const values = measured.map(({ value }) => value);
  const [median, spread] = [medianOf(values), spreadOf(values)];
  const rise = slopeOf(measured.length > 400 ? thinned(measured) : measured) * (seconds - from);
  const bound = Math.max(leastRise, riseShareMax * median, NOISE_TIMES * spread);
  const reported = `median ${median.toFixed(1)} ${unit}, rising by ${rise.toFixed(1)}`;
  if (!Number.isFinite(bound)) return { name, observed: `${reported} (not checked)`, passed: values.length > 0 };
  return { name, observed: `${reported}, at most ${bound.toFixed(1)}`, passed: values.length > 3 && rise <= bound };
}

/** Reduces many samples to as many as a slope needs. */
function thinned<T>(samples: readonly T[]): T[] {
  const step = Math.ceil(samples.length / 400);
  return samples.filter((_sample, index) => index % step === 0);
}

import type { Promised } from '../../chaos-run.js';
import { medianOf, slopeOf, spreadOf } from './slope.js';

/** The first part, in which memory and caches fill, is not held against the rest. */
const WARM_UP_SHARE = 0.3;
/** A figure may rise by this share of itself over the time that is measured, or by three times its own noise. */
const RISE_SHARE_MAX = 0.1;
/** What is resident follows the heap late and in large steps. */
const RISE_SHARE_MAX_RESIDENT = 0.15;
const NOISE_TIMES = 3;
/** On a machine that does other work too. */
const LATENCY_RISE_MS = 100;

export interface Sample {
  at: number;
  process: number;
  heapMegabytes: number;
  rssMegabytes: number;
  sockets: number;
}

/** What a process holds. @param long whether there was load for long enough to hold its slope against a bound */
export function processFlat(name: string, samples: readonly Sample[], seconds: number, long: boolean): Promised[] {
  // A few seconds tell nothing of a slope.
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

/** How long callers wait for what is cached, from samples of seconds and milliseconds. */
export function latencyFlat(
  samples: readonly { at: number; value: number }[],
  seconds: number,
  long: boolean,
): Promised {
  return flat(
    'Time of a call for what is cached',
    samples,
    seconds,
    'ms',
    long ? LATENCY_RISE_MS : Number.POSITIVE_INFINITY,
  );
}

/** What a figure would rise by over the time that is measured, held against itself and its noise. */
function flat(
  what: string,
  samples: readonly { at: number; value: number }[],
  seconds: number,
  unit: string,
  leastRise: number,
  riseShareMax = RISE_SHARE_MAX,
): Promised {
  const from = seconds * WARM_UP_SHARE;
  const measured = samples.filter((sample) => sample.at >= from);
  const values = measured.map(({ value }) => value);
  const [median, spread] = [medianOf(values), spreadOf(values)];
  const rise = slopeOf(measured.length > 400 ? thinned(measured) : measured) * (seconds - from);
  const bound = Math.max(leastRise, riseShareMax * median, NOISE_TIMES * spread);
  const reported = `median ${median.toFixed(1)} ${unit}, rising by ${rise.toFixed(1)}`;
  if (!Number.isFinite(bound)) return { what, seen: `${reported} (told only)`, held: values.length > 0 };
  return { what, seen: `${reported}, at most ${bound.toFixed(1)}`, held: values.length > 3 && rise <= bound };
}

/** Enough of many for a slope. */
function thinned<T>(samples: readonly T[]): T[] {
  const step = Math.ceil(samples.length / 400);
  return samples.filter((_sample, index) => index % step === 0);
}

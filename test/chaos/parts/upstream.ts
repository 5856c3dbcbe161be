import pLimit from 'p-limit';
import { measureInTime, type Measurements } from '../../harness/until.js';
import { atMost, equal, nothing, type Part, type Check } from '../chaos-run.js';
import { Canary } from '../harness/canary.js';
import { allCells, fewCells, nameOf } from './upstream/cells.js';
import { type CellEnd, DEADLINE_SECONDS, Worker, type WorkerResult } from './upstream/client-loop.js';

const WORKERS = 6;
const WORKERS_SHORT = 2;
/** Timeouts of a request: shorter than a call's deadline, so that there is time for a retry, and longer. */
const TIMEOUTS_SECONDS: readonly number[] = [1, 10];

/**
 * Three forms (received, joined, as text) of the largest body that is read, for each concurrent request, in addition to
 * the service's base memory.
 */
const MEGABYTES_MAX = 200 + 16 * 3 * 17;

/** Every fault of the platform on every kind of request. */
export const upstream: Part = async (chaosRun) => {
  const { short, seed, say } = chaosRun;
  const cells = short ? fewCells(seed) : allCells(seed);
  const canary = await Canary.start();
  const starts = Array.from({ length: short ? WORKERS_SHORT : WORKERS }, (_, index) =>
    Worker.start(chaosRun, seed + index, TIMEOUTS_SECONDS[index % TIMEOUTS_SECONDS.length] ?? 1),
  );
  const started = await Promise.allSettled(starts);
  const workers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  try {
    const failed = started.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    const tried: { end: CellEnd; repeat: () => Promise<CellEnd> }[] = [];
    const free = [...workers];
    await pLimit(workers.length).map(cells, async (cell, index) => {
      const worker = free.pop();
      if (!worker) throw new Error('No worker is free.');
      const location = canary.locations[index % canary.locations.length] ?? '';
      const repeat = (): Promise<CellEnd> => worker.run(cell, location, seed + index);
      tried.push({ end: await repeat(), repeat });
      free.push(worker);
      if (tried.length % 50 === 0) say(`${tried.length} of ${cells.length}`);
    });
    const measured: Measurements<CellEnd>[] = [];
    for (const { end, repeat } of tried) {
      if (!isInTime(end)) say(`repeated alone: ${lateness(end).join('; ')}`);
      measured.push(await measureInTime(repeat, isInTime, end));
    }
    const remaining = await Promise.all(workers.map((worker) => worker.finish()));
    return report(measured, remaining, canary.contacts);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    canary.close();
  }
};

function isInTime(end: CellEnd): boolean {
  return lateness(end).length === 0;
}

/** What took longer than it may. */
function lateness({ cell, late, slowestMs }: CellEnd): string[] {
  const slow = slowestMs > (DEADLINE_SECONDS + 1) * 1_000 ? [`a call takes ${Math.round(slowestMs)} ms`] : [];
  return [...late, ...slow].map((what) => `${nameOf(cell)}: ${what}`);
}

function report(
  measured: readonly Measurements<CellEnd>[],
  remaining: readonly WorkerResult[],
  contacts: number,
): Check[] {
  const ends = measured.flatMap(({ all }) => all);
  const sums = (of: (end: WorkerResult) => number): number => remaining.reduce((total, end) => total + of(end), 0);
  const unstruck = ends.filter(({ cell, struck }) => struck === 0 && cell.some(({ rate }) => rate === 1));
  return [
    nothing(
      'A fault on all requests of a kind hit at least one',
      unstruck.map(({ cell }) => JSON.stringify(cell)),
    ),
    nothing(
      'Every result fits its fault, no block is reported as missing captions or the reverse, unaffected videos succeed, and the sums are correct',
      ends.flatMap(({ wrong }) => wrong),
    ),
    nothing(
      'Calls that take longer than their deadline and a second, and timeouts although no fault delays responses, also when the cell is repeated alone',
      measured.flatMap(({ last }) => lateness(last)),
    ),
    atMost(
      'Maximum memory of a service, with endless bodies',
      Math.max(...remaining.map(({ peakMegabytes }) => peakMegabytes)),
      MEGABYTES_MAX,
      'MB',
    ),
    equal(
      'Charged transcripts equal the fetched ones',
      sums(({ used }) => used),
      sums(({ fetched }) => fetched),
    ),
    nothing(
      'No bug in the log',
      remaining.flatMap(({ bugs }) => bugs),
    ),
    ...remaining.flatMap(({ settled }) => settled),
    equal('Redirects followed to an address of this network', contacts, 0),
  ];
}

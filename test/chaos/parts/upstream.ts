import { FAULT_KINDS } from '../../fake-youtube/faults/fault-registry.js';
import { atOnce } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type PartReport } from '../chaos-run.js';
import { startCanary } from './upstream/canary.js';
import { allCells, type Cell, fewCells } from './upstream/cells.js';
import { type CellEnd, DEADLINE_SECONDS, Worker, type WorkerResult } from './upstream/client-loop.js';

const WORKERS = 6;
const WORKERS_SHORT = 2;
/** Shorter than the deadline of a call, so that there is time to try again, and longer. */
const TIMEOUTS_SECONDS: readonly number[] = [1, 10];
/** Of what is told, on a machine that is busy otherwise; nothing of it is wrong, as its time was over. */
const LATE_SHARE_MAX = 0.02;

/**
 * Three forms (as it came, joined, as text) of the largest body that is read, for each of the requests at a time, beside what
 * a service has anyway.
 */
const MEGABYTES_MAX = 200 + 16 * 3 * 17;

/** Every fault of the platform on every kind of request. */
export const upstream: Part = async (chaosRun) => {
  const { short, seed, say } = chaosRun;
  const cells = short ? fewCells(seed) : allCells(seed);
  const canary = await startCanary();
  const starts = Array.from({ length: short ? WORKERS_SHORT : WORKERS }, (_, index) =>
    Worker.start(chaosRun, seed + index, TIMEOUTS_SECONDS[index % TIMEOUTS_SECONDS.length] ?? 1),
  );
  const started = await Promise.allSettled(starts);
  const workers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  try {
    const failed = started.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    const ends: CellEnd[] = [];
    const free = [...workers];
    await atOnce([...cells.entries()], workers.length, async ([index, cell]) => {
      const worker = free.pop();
      if (!worker) throw new Error('There is a lane for each that runs.');
      const location = canary.locations[index % canary.locations.length] ?? '';
      ends.push(await worker.run(cell, location, seed + index));
      free.push(worker);
      if (ends.length % 50 === 0) say(`${ends.length} of ${cells.length}`);
    });
    const remaining = await Promise.all(workers.map((lane) => lane.finish()));
    return report(cells, ends, remaining, canary.contacts());
  } finally {
    await Promise.all(workers.map((lane) => lane.stop()));
    await canary.close();
  }
};

function report(
  cells: readonly Cell[],
  ends: readonly CellEnd[],
  remaining: readonly WorkerResult[],
  contacts: number,
): PartReport {
  const sum = (of: (end: CellEnd) => number): number => ends.reduce((total, end) => total + of(end), 0);
  const sums = (of: (end: WorkerResult) => number): number => remaining.reduce((total, end) => total + of(end), 0);
  const reported = sum(({ entries }) => entries) + sum(({ refused }) => refused);
  const unstruck = ends.filter(({ cell, struck }) => struck === 0 && cell.some(({ rate }) => rate === 1));
  const singles = ends.flatMap(({ cell: [one, other], struck }) => (one && !other ? [{ ...one, struck }] : []));
  const spared = FAULT_KINDS.flatMap((kind) =>
    [0.5, 1].flatMap((rate) => {
      if (!singles.some((one) => one.rate === rate)) return [];
      const of = singles.filter((one) => one.kind === kind && one.rate === rate);
      return of.some(({ struck }) => struck > 0) ? [] : [`${kind} on ${rate * 100} %`];
    }),
  );
  return {
    title: 'The platform in every kind of trouble',
    text:
      `${cells.length} times a few calls side by side: each of ${FAULT_KINDS.length} faults on 5 %, 50 % and all of each kind of ` +
      'request, and any two of them together. Between, the clock of the service is put forward by more than a day, so that ' +
      `nothing is remembered or rested from. ${sum(({ calls }) => calls)} calls with ${sum(({ entries }) => entries)} entries, ` +
      `${sums(({ requested }) => requested)} requests to the platform, ${sum(({ struck }) => struck)} of them hit.`,
    columns: ['fault', 'times', 'requests hit', 'calls refused', 'entries', 'with a transcript', 'slowest call, s'],
    rows: FAULT_KINDS.map((kind) => {
      const of = ends.filter(({ cell }) => cell.some((fault) => fault.kind === kind));
      const count = (measurement: (end: CellEnd) => number): number =>
        of.reduce((total, end) => total + measurement(end), 0);
      return [
        kind,
        of.length,
        count(({ struck }) => struck),
        count(({ refused }) => refused),
        count(({ entries }) => entries),
        count(({ succeeded }) => succeeded),
        (Math.max(0, ...of.map(({ slowestMs }) => slowestMs)) / 1000).toFixed(1),
      ];
    }),
    promised: [
      equal('Every combination was tried', ends.length, cells.length),
      nothing('Every fault hit requests at half and at all of them', spared),
      nothing(
        'A fault on all requests of a kind hit at least one',
        unstruck.map(({ cell }) => JSON.stringify(cell)),
      ),
      atMost(
        'Every call ends within its deadline and a second',
        Math.max(...ends.map(({ slowestMs }) => slowestMs)) / 1000,
        DEADLINE_SECONDS + 1,
        's',
      ),
      nothing(
        'Every end fits its fault, no block is told as missing captions or the reverse, what is known good succeeds, and the sums are right',
        ends.flatMap(({ wrong }) => wrong),
      ),
      atMost(
        'Told as out of time although nothing was slow on purpose',
        (100 * sum(({ late }) => late)) / reported,
        100 * LATE_SHARE_MAX,
        '%',
      ),
      atMost(
        'The most memory of a service, with bodies without end',
        Math.max(...remaining.map(({ peakMegabytes }) => peakMegabytes)),
        MEGABYTES_MAX,
        'MB',
      ),
      equal(
        'Charged is what was fetched',
        sums(({ used }) => used),
        sums(({ fetched }) => fetched),
      ),
      nothing(
        'The usage can be recomputed',
        remaining.flatMap(({ exact }) => (exact ? [] : ['not exact'])),
      ),
      equal(
        'Nothing is left reserved',
        sums(({ reserved }) => reserved),
        0,
      ),
      nothing(
        'No socket, timer or handle is left',
        remaining.flatMap(({ leaks }) => leaks),
      ),
      nothing(
        'No fault in the log',
        remaining.flatMap(({ bugs }) => bugs),
      ),
      ...remaining.flatMap(({ settled }) => settled),
      equal('Nobody followed a redirect to an address of this network', contacts, 0),
    ],
  };
}

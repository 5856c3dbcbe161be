import { pick, seededRandom } from '../../../fake-youtube/catalogue/random.js';
import {
  ALL_FAULT_KINDS,
  type Fault,
  FAULT_KINDS,
  type FaultKind,
  isPossible,
  type MatchableKind,
} from '../../../fake-youtube/faults/fault-registry.js';

/** The kinds of requests to the platform, by their name in the tables. */
export const REQUESTS: Readonly<Record<string, readonly MatchableKind[]>> = {
  resolve: ['resolve'],
  channel: ['browse-channel'],
  uploads: ['browse-uploads', 'browse-continuation'],
  shorts: ['browse-shorts'],
  feed: ['feed'],
  player: ['player', 'reel'],
  captions: ['timedtext'],
  visitor: ['visitor'],
};
const RATES: readonly number[] = [0.05, 0.5, 1];
const PAIR_RATE = 0.5;

/** One fault on one kind of request. */
interface CellFault {
  kind: FaultKind;
  request: string;
  rate: number;
}

/** The faults that are active during a few calls. */
export type Cell = readonly CellFault[];

/** Every fault on every kind of request at every rate, and every two faults together on any two; refusals alone. */
export function allCells(seed: number): Cell[] {
  const random = seededRandom(seed);
  const singles = ALL_FAULT_KINDS.flatMap((kind) =>
    Object.keys(REQUESTS).flatMap((request) =>
      RATES.map((rate): Cell => (isTried(kind, request) ? [{ kind, request, rate }] : [])),
    ),
  );
  const pairs = FAULT_KINDS.flatMap((one, index) =>
    FAULT_KINDS.slice(index + 1).map((other): Cell => [any(one, random), any(other, random)]),
  );
  return [...singles, ...pairs].filter((cell) => cell.length > 0);
}

/** Each fault once on every request of a kind, and a few pairs. */
export function fewCells(seed: number): Cell[] {
  const cells = allCells(seed);
  const requests = Object.keys(REQUESTS);
  const singles = ALL_FAULT_KINDS.map((kind, index) => {
    const request = requests[(index + seed) % requests.length] ?? 'player';
    const possible = requests.find((one) => isTried(kind, one)) ?? request;
    return [{ kind, request: isTried(kind, request) ? request : possible, rate: 1 }];
  });
  return [...singles, ...cells.filter(({ length }) => length === 2).slice(0, 4)];
}

/** The faults as the fake YouTube takes them. @param location for those that redirect */
export function faultsOf(cell: Cell, location: string): Fault[] {
  return cell.map(({ kind, request, rate }) => ({
    kind,
    rate,
    match: { kind: REQUESTS[request] ?? [] },
    ...(kind === 'redirect' && { location }),
  }));
}

export function nameOf(cell: Cell): string {
  return cell.map(({ kind, request, rate }) => `${kind} on ${rate * 100} % of ${request}`).join(' and ');
}

function any(kind: FaultKind, random: () => number): CellFault {
  const possible = Object.keys(REQUESTS).filter((request) => isTried(kind, request));
  return { kind, request: pick(random, possible), rate: PAIR_RATE };
}

function isTried(kind: FaultKind, request: string): boolean {
  // A bare 403 is a block for requests of videos only.
  if (kind === 'forbidden' && request !== 'player' && request !== 'captions') return false;
  return (REQUESTS[request] ?? []).some((one) => one !== 'browse' && isPossible(kind, one));
}

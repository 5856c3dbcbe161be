import { atMost, equal, nothing, type PartReport } from '../../chaos-run.js';
import type { Measurements } from '../../../until.js';
import type { LoadEnd } from './load.js';

export const REPLICA_KILLED = 'Service: one of two replicas is killed and started again';
const UNAVAILABLE_MAX_SECONDS = 12;
/** A call waits for Redis for two seconds at most; the rest is its own work under load. */
const CALL_MAX_SECONDS = 3;

/** The calls before, during and after one failure. */
export interface FailoverEnd extends LoadEnd {
  name: string;
  refuses: boolean;
  unavailableMs: number;
  /** Redis only: until a transcript fetched by one replica is cached for the other. */
  sharedMs?: number;
  faults: string[];
}

/** Whether the service was available again in time, and no call waited for Redis for longer than it may. */
export function isInTime({ refuses, unavailableMs, sharedMs, slowestMs }: FailoverEnd): boolean {
  if (refuses) return unavailableMs <= UNAVAILABLE_MAX_SECONDS * 1_000;
  if (sharedMs === undefined) return true;
  return sharedMs <= UNAVAILABLE_MAX_SECONDS * 1_000 && slowestMs <= CALL_MAX_SECONDS * 1_000;
}

/** The table of the failures, and what they show. */
export function failoverTables(
  measured: readonly Measurements<FailoverEnd>[],
): Pick<PartReport, 'columns' | 'rows' | 'checks'> {
  const ends = measured.flatMap(({ all }) => all);
  const timed = measured.map(({ last }) => last);
  const seconds = (ms: number | undefined): string => (ms === undefined ? '' : (ms / 1000).toFixed(1));
  const databases = timed.filter(({ refuses }) => refuses);
  const caches = timed.filter(({ sharedMs }) => sharedMs !== undefined);
  const names = [...new Set(ends.map(({ name }) => name))];
  const worst = (name: string, of: (end: FailoverEnd) => number | undefined): number =>
    Math.max(...timed.filter((end) => end.name === name).map((end) => of(end) ?? Number.NaN));
  const sum = (name: string, of: (end: FailoverEnd) => number): number =>
    ends.filter((end) => end.name === name).reduce((total, end) => total + of(end), 0);
  return {
    columns: [
      'failure',
      'times',
      'calls',
      'of these 503',
      'cut off',
      'not connected',
      'unavailable, s',
      'shared cache again after, s',
    ],
    rows: names.map((name) => [
      ...[name, ends.filter((end) => end.name === name).length],
      ...[sum(name, ({ calls }) => calls), sum(name, ({ refused }) => refused)],
      ...[sum(name, ({ cutOff }) => cutOff), sum(name, ({ unreachable }) => unreachable)],
      ...[seconds(worst(name, ({ unavailableMs }) => unavailableMs))],
      caches.some((end) => end.name === name) ? seconds(worst(name, ({ sharedMs }) => sharedMs)) : '',
    ]),
    checks: [
      nothing(
        'Every call is 503 or has a complete response, each is charged once for what was fetched, and no reservation remains',
        ends.flatMap(({ faults }) => faults),
      ),
      nothing(
        'No call is refused while Redis or a replica of the service fails',
        ends
          .filter(({ refuses, refused }) => !refuses && refused > 0)
          .map(({ name, refused }) => `${name}: ${refused}`),
      ),
      nothing(
        'No call is cut off unless its replica is killed',
        ends
          .filter(({ name }) => name !== REPLICA_KILLED)
          .flatMap(({ name, cutOff }) => (cutOff > 0 ? [`${name}: ${cutOff}`] : [])),
      ),
      nothing(
        'No call finds a replica not listening unless that replica is killed',
        ends
          .filter(({ name }) => name !== REPLICA_KILLED)
          .flatMap(({ name, unreachable }) => (unreachable > 0 ? [`${name}: ${unreachable}`] : [])),
      ),
      equal(
        'Some calls were refused without PostgreSQL',
        databases.some(({ refused }) => refused > 0),
        true,
      ),
      atMost(
        'Calls are served again after the failure of PostgreSQL within',
        Math.max(...databases.map(({ unavailableMs }) => unavailableMs)) / 1000,
        UNAVAILABLE_MAX_SECONDS,
        's',
      ),
      atMost(
        'A call without Redis takes at most',
        Math.max(...caches.map(({ slowestMs }) => slowestMs)) / 1000,
        CALL_MAX_SECONDS,
        's',
      ),
      atMost(
        'Replicas share their cache again after the failure of Redis within',
        Math.max(...caches.map(({ sharedMs }) => sharedMs ?? Number.NaN)) / 1000,
        UNAVAILABLE_MAX_SECONDS,
        's',
      ),
    ],
  };
}

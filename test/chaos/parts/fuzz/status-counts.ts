import type { Check } from '../../chaos-run.js';
import type { Exchange } from './exchange.js';
import type { FuzzRequest } from './fuzz-request.js';

interface Counts {
  requests: number;
  well: number;
  refused: number;
  broken: number;
  closed: number;
  slowestMs: number;
}

/** The results by kind of request. */
export class StatusCounts {
  private readonly kinds = new Map<string, Counts>();
  private readonly statuses = new Map<number, number>();
  private readonly credentials = new Set<string>();

  count({ kind, credential }: FuzzRequest, { response, ms }: Exchange): void {
    const counts = this.kinds.get(kind) ?? { requests: 0, well: 0, refused: 0, broken: 0, closed: 0, slowestMs: 0 };
    this.kinds.set(kind, counts);
    counts.requests += 1;
    counts.slowestMs = Math.max(counts.slowestMs, ms);
    this.credentials.add(credential.name);
    if (!response) {
      counts.closed += 1;
      return;
    }
    const { status } = response;
    counts[status < 400 ? 'well' : status < 500 ? 'refused' : 'broken'] += 1;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  rows(): (string | number)[][] {
    return [...this.kinds].map(([kind, counts]) => [
      kind,
      counts.requests,
      counts.well,
      counts.refused,
      counts.broken,
      counts.closed,
      counts.slowestMs.toFixed(0),
    ]);
  }

  /** Checks that the random requests covered the intended statuses and credentials. */
  checks(short: boolean): Check[] {
    const wanted = [200, 201, 202, 204, 400, 401, 402, 403, 404, 405, 409, 413, 415, 417, 429];
    const seen = [...this.statuses.keys()].sort((one, other) => one - other);
    const missing = wanted.filter((status) => !this.statuses.has(status));
    return [
      {
        name: 'every expected status occurred',
        observed: seen.map((status) => `${this.statuses.get(status)} × ${status}`).join(', '),
        passed: missing.length === 0 || (short && missing.length < 4),
      },
      {
        name: 'keys of every kind were used',
        observed: `${this.credentials.size} kinds`,
        passed: this.credentials.size >= 28,
      },
    ];
  }
}

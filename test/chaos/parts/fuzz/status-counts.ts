import type { Check } from '../../chaos-run.js';
import type { Exchange } from './exchange.js';
import type { FuzzRequest } from './fuzz-request.js';

interface Counts {
  connections: number;
  responses: number;
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

  count({ kind, credential }: FuzzRequest, { responses, ms }: Exchange): void {
    const counts = this.kinds.get(kind) ?? {
      connections: 0,
      responses: 0,
      well: 0,
      refused: 0,
      broken: 0,
      closed: 0,
      slowestMs: 0,
    };
    this.kinds.set(kind, counts);
    counts.connections += 1;
    counts.responses += responses.length;
    if (responses.length === 0) counts.closed += 1;
    counts.slowestMs = Math.max(counts.slowestMs, ms);
    for (const { status } of responses) {
      counts[status < 400 ? 'well' : status < 500 ? 'refused' : 'broken'] += 1;
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    }
    if (credential) this.credentials.add(credential.name);
  }

  rows(): (string | number)[][] {
    return [...this.kinds].map(([kind, counts]) => [
      kind,
      counts.connections,
      counts.responses,
      counts.well,
      counts.refused,
      counts.broken,
      counts.closed,
      counts.slowestMs.toFixed(0),
    ]);
  }

  /** Checks that the random requests covered the intended statuses and credentials. */
  checks(short: boolean): Check[] {
    const wanted = [200, 201, 202, 204, 400, 401, 402, 403, 404, 405, 409, 413, 415, 417, 429, 431];
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

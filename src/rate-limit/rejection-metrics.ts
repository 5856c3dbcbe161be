import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';

/** Limits that refuse requests: by key, by process, and by address after failed authentications. */
const LIMITS = ['key_per_minute', 'key_in_flight', 'process_in_flight', 'failing_address'] as const;

/** Requests without a valid API key or token, and tokens of organizations that are not linked or clients that are blocked. */
const FAILURES = ['no_key', 'invalid_key', 'invalid_token', 'organization_not_linked', 'client_blocked'] as const;

export type AuthenticationFailure = (typeof FAILURES)[number];

/** Metrics of the requests that authentication and the limits refuse. */
@Injectable()
export class RejectionMetrics {
  private readonly failedAuthentications: Counter<'reason'>;
  private readonly limitRefusals: Counter<'reason'>;

  constructor(registry: Registry) {
    const options = { labelNames: ['reason'] as const, registers: [registry] };
    this.failedAuthentications = new Counter({
      name: 'ct_failed_authentications_total',
      help: 'Requests without a valid API key or token.',
      ...options,
    });
    this.limitRefusals = new Counter({
      name: 'ct_limit_refusals_total',
      help: 'Requests refused by a limit: 429, or 503 at the capacity of the process.',
      ...options,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const reason of FAILURES) this.failedAuthentications.inc({ reason }, 0);
    for (const reason of LIMITS) this.limitRefusals.inc({ reason }, 0);
  }

  /** Counts a request that a limit refused. */
  count(reason: (typeof LIMITS)[number]): void {
    this.limitRefusals.inc({ reason });
  }

  /** Counts a request whose caller is not accepted. */
  countFailure(reason: AuthenticationFailure): void {
    this.failedAuthentications.inc({ reason });
  }
}

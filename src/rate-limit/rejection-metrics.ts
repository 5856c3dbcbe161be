import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';

/** Limits that refuse requests: by key, by process, and by address after failed authentications. */
const LIMITS = ['key_per_minute', 'key_in_flight', 'process_in_flight', 'failing_address'] as const;

/** Requests without a valid API key: none was sent, or it is malformed, unknown, revoked or expired. */
type RejectionReason = (typeof LIMITS)[number] | 'no_key' | 'invalid_key';

/** Metrics of the requests that authentication and the limits refuse. */
@Injectable()
export class RejectionMetrics {
  private readonly failedAuthentications: Counter<'reason'>;
  private readonly limitRefusals: Counter<'reason'>;

  constructor(registry: Registry) {
    const options = { labelNames: ['reason'] as const, registers: [registry] };
    this.failedAuthentications = new Counter({
      name: 'ct_failed_authentications_total',
      help: 'Requests without a valid API key.',
      ...options,
    });
    this.limitRefusals = new Counter({
      name: 'ct_limit_refusals_total',
      help: 'Requests refused by a limit: 429, or 503 at the capacity of the process.',
      ...options,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const reason of ['no_key', 'invalid_key']) this.failedAuthentications.inc({ reason }, 0);
    for (const reason of LIMITS) this.limitRefusals.inc({ reason }, 0);
  }

  /** Counts one refused request. */
  count(reason: RejectionReason): void {
    if (reason === 'no_key' || reason === 'invalid_key') this.failedAuthentications.inc({ reason });
    else this.limitRefusals.inc({ reason });
  }
}

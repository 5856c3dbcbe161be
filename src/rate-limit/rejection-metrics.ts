import { Injectable } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import type { ErrorCode } from '../domain/error-codes.js';
import { DomainError } from '../domain/errors.js';
import { createCounter } from '../observability/metrics-registry.js';

/** Limits that refuse requests: by key, by organization, by process, by the address of a feed, and by network after failed authentications. */
const LIMITS = [
  ...(['key_per_minute', 'key_in_flight', 'organization_per_minute', 'organization_in_flight'] as const),
  ...(['process_in_flight', 'feed_per_hour', 'failing_address'] as const),
];

/** The codes of callers that are not accepted, with the reason as the metric names it. */
const FAILURES: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthorized: 'no_key',
  invalid_api_key: 'invalid_key',
  invalid_token: 'invalid_token',
  organization_not_linked: 'organization_not_linked',
  client_blocked: 'client_blocked',
  admin_role_required: 'admin_role_required',
};
/** Of a request to `/admin`, also with a wrong one. */
const NO_ADMIN_TOKEN = 'no_admin_token';

/** Metrics of the requests that authentication and the limits refuse. */
@Injectable()
export class RejectionMetrics {
  private readonly failedAuthentications: Counter<'reason'>;
  private readonly limitRefusals: Counter<'reason'>;

  constructor(registry: Registry) {
    const failed = 'Requests without a valid API key or token.';
    const reasons = { reason: [...Object.values(FAILURES), NO_ADMIN_TOKEN] };
    this.failedAuthentications = createCounter(registry, 'ct_failed_authentications_total', failed, reasons);
    const refused = 'Requests refused by a limit: 429, or 503 at the capacity of the process.';
    this.limitRefusals = createCounter(registry, 'ct_limit_refusals_total', refused, { reason: LIMITS });
  }

  count(reason: (typeof LIMITS)[number]): void {
    this.limitRefusals.inc({ reason });
  }

  /** Counts an error that says that a caller, or an operator, is not accepted. @returns whether it is one */
  countFailure(error: unknown, of: 'caller' | 'operator' = 'caller'): boolean {
    const code = error instanceof DomainError ? error.code : undefined;
    const reason = code === 'unauthorized' && of === 'operator' ? NO_ADMIN_TOKEN : code && FAILURES[code];
    if (reason !== undefined) this.failedAuthentications.inc({ reason });
    return reason !== undefined;
  }
}

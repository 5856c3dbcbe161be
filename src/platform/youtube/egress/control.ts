import type { ControlResult } from '../../egress-states.js';
import type { UpstreamMetrics } from '../upstream-metrics.js';
import { report } from '../event-log.js';
import { Attempt, type EgressUse } from './attempt.js';
import type { Egress } from './egress.js';
import type { BudgetKind } from './egress-gate.js';
import type { ControlEnd } from './egress-pool.js';
import type { Finding } from './examination.js';
import type { RequestScope } from './request-pipeline.js';
import { RetryBudget } from './retry.js';
import { type FailedResponse, isUnreached } from './upstream-response.js';

const TIMEOUT_MS = 20_000;

export interface Asked {
  /** The channel or video that is known to be served. */
  readonly subject: string;
  readonly end: ControlEnd;
  /** The platform's. */
  readonly retryAfterSeconds: number | null;
}

/** A scope of the service itself: no caller ends it, nothing holds its requests back, and none is retried. */
export function serviceScope(egress: Egress, subject: string, timeoutMs: number): RequestScope {
  const context = {
    signal: AbortSignal.timeout(timeoutMs),
    deadlineAtMs: performance.now() + timeoutMs,
    organizationId: '',
    fairnessKey: {},
  };
  const attempt = new Attempt(subject, 'control');
  return { egress, attempt, context, budget: new RetryBudget(0), hasAlternative: false, attempts: 1 };
}

/** Asks for a subject that is known to be served; a control that takes too long was not reached. */
export async function askControl(
  egress: Egress,
  subject: string,
  read: (scope: RequestScope) => Promise<ControlEnd | FailedResponse | { kind: 'unparsable' }>,
): Promise<Asked> {
  const result = await read(serviceScope(egress, subject, TIMEOUT_MS)).catch(() => 'unreached' as const);
  if (typeof result === 'string') return { subject, end: result, retryAfterSeconds: null };
  if (result.kind === 'blocked') return { subject, end: 'refused', retryAfterSeconds: result.retryAfterSeconds };
  return { subject, end: isUnreached(result) ? 'unreached' : 'unknown', retryAfterSeconds: null };
}

/** A finding as operators see it. */
const RESULTS: Readonly<Record<Finding, ControlResult>> = {
  served: 'served',
  'client-refused': 'client_refused',
  'address-refused': 'refused',
  unknown: 'unknown',
};

interface Experiment {
  use: EgressUse;
  kind: BudgetKind;
  client: string;
  /** The channel or video that was doubted. */
  subject: string;
  finding: Finding;
  controls: readonly Asked[];
}

/** Reports an experiment, and pauses an address that is refused. */
export function concludeExperiment(
  egress: Egress,
  { controls, ...fields }: Experiment,
  metrics: UpstreamMetrics,
): Finding {
  const { use, kind, client, finding } = fields;
  const retryAfterSeconds = controls.find((control) => control.retryAfterSeconds !== null)?.retryAfterSeconds ?? null;
  if (finding === 'address-refused' && !egress.gateway) egress.gates[use].pause(kind, retryAfterSeconds);
  egress.gates[use].noteControl(kind, RESULTS[finding]);
  metrics.notice('control', client, finding);
  const asked = { exit: egress.name, ...fields, controls: controls.map((control) => control.subject) };
  report(finding === 'served' ? 'log' : 'warn', 'youtube_control_asked', asked);
  return finding;
}

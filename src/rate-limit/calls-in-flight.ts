import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Environment } from '../config/environment.js';
import { ConcurrencyLimitReachedError, ServiceAtCapacityError } from '../domain/errors.js';
import { createGauge } from '../observability/metrics-registry.js';
import { RejectionMetrics } from './rejection-metrics.js';

/** The end of a running call cannot be predicted. */
const RETRY_AFTER_SECONDS = 2;

/**
 * Limits concurrent calls for transcripts, uploads and job results, over HTTP, messages and MCP: of this process, and of
 * each key in this process.
 */
@Injectable()
export class CallsInFlight {
  private total = 0;
  private readonly byKey = new Map<string, number>();

  constructor(
    private readonly environment: Environment,
    private readonly metrics: RejectionMetrics,
    registry: Registry,
  ) {
    const running = 'Running calls for transcripts, uploads and job results.';
    createGauge(registry, 'ct_calls_in_flight', running, () => this.count);
    const max = 'CALLS_PER_PROCESS; 0 is no limit.';
    createGauge(registry, 'ct_calls_in_flight_max', max, () => environment.CALLS_PER_PROCESS);
  }

  /** Calls that are running in this process. */
  get count(): number {
    return this.total;
  }

  /**
   * Acquires a slot for a call until `ended` resolves.
   *
   * @throws ConcurrencyLimitReachedError for the key, ServiceAtCapacityError for the process
   */
  acquire(keyId: string, ended: Promise<void>): void {
    const { CALLS_PER_KEY, CALLS_PER_PROCESS } = this.environment;
    if (CALLS_PER_KEY > 0 && (this.byKey.get(keyId) ?? 0) >= CALLS_PER_KEY) {
      this.metrics.count('key_in_flight');
      throw new ConcurrencyLimitReachedError(CALLS_PER_KEY, RETRY_AFTER_SECONDS);
    }
    if (CALLS_PER_PROCESS > 0 && this.total >= CALLS_PER_PROCESS) {
      this.metrics.count('process_in_flight');
      throw new ServiceAtCapacityError(RETRY_AFTER_SECONDS);
    }
    this.change(keyId, 1);
    void ended.then(() => this.change(keyId, -1));
  }

  private change(keyId: string, by: 1 | -1): void {
    this.total += by;
    const count = (this.byKey.get(keyId) ?? 0) + by;
    if (count > 0) this.byKey.set(keyId, count);
    else this.byKey.delete(keyId);
  }
}

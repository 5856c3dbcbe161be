import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Environment } from '../config/environment.js';
import type { Caller } from '../domain/caller.js';
import { ConcurrencyLimitReachedError, ServiceAtCapacityError, type LimitScope } from '../domain/errors.js';
import { createGauge } from '../observability/metrics-registry.js';
import { RejectionMetrics } from './rejection-metrics.js';

/** The end of a running call cannot be predicted. */
const RETRY_AFTER_SECONDS = 2;

/**
 * Limits concurrent calls for transcripts, uploads and job results, over HTTP, messages and MCP: of this process, and of
 * each key and each organization in it.
 */
@Injectable()
export class CallsInFlight {
  private total = 0;
  /** By the IDs of keys and organizations. */
  private readonly running = new Map<string, number>();

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

  get count(): number {
    return this.total;
  }

  /**
   * Acquires a slot for a call until `ended` resolves.
   *
   * @throws ConcurrencyLimitReachedError for the key or the organization, ServiceAtCapacityError for the process
   */
  acquire({ keyId, organization }: Caller, ended: Promise<void>): void {
    const { CALLS_PER_KEY, CALLS_PER_ORGANIZATION, CALLS_PER_PROCESS } = this.environment;
    this.refuseAt(CALLS_PER_KEY, 'key', keyId);
    this.refuseAt(CALLS_PER_ORGANIZATION, 'organization', organization.id);
    if (CALLS_PER_PROCESS > 0 && this.total >= CALLS_PER_PROCESS) {
      this.metrics.count('process_in_flight');
      throw new ServiceAtCapacityError(RETRY_AFTER_SECONDS);
    }
    const ids = [keyId, organization.id];
    this.change(ids, 1);
    void ended.then(() => this.change(ids, -1));
  }

  private refuseAt(max: number, scope: LimitScope, id: string): void {
    if (max === 0 || (this.running.get(id) ?? 0) < max) return;
    this.metrics.count(`${scope}_in_flight`);
    throw new ConcurrencyLimitReachedError(max, RETRY_AFTER_SECONDS, scope);
  }

  private change(ids: readonly string[], by: 1 | -1): void {
    this.total += by;
    for (const id of ids) {
      const count = (this.running.get(id) ?? 0) + by;
      if (count > 0) this.running.set(id, count);
      else this.running.delete(id);
    }
  }
}

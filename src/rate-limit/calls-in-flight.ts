import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Injectable,
  Optional,
  type BeforeApplicationShutdown,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { SharedCounts } from '../cache/shared-counts.js';
import { Environment } from '../config/environment.js';
import { ConcurrencyLimitReachedError, ServiceAtCapacityError } from '../domain/errors.js';
import { requestContextOf } from '../http/request-context.js';
import { RejectionMetrics } from './rejection-metrics.js';

/** The end of a running call cannot be predicted. */
const RETRY_AFTER_SECONDS = 2;
/** Lease of a slot in Redis. A running call renews it; the slot of a killed process expires with it. */
const LEASE_MS = 60_000;
/** Two renewals in a row may fail, while Redis is unavailable, before the lease ends. */
const RENEWALS_PER_LEASE = 3;
const RELEASE_RETRY_MS = 1_000;

const ACQUIRE = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return { 0 } end
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return { 1 }`;

/** Also restores a slot that Redis has evicted: the call is running, whatever the limit is. */
const RENEW = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return { 1 }`;

const RELEASE = `return { redis.call('ZREM', KEYS[1], ARGV[1]) }`;

/**
 * Limits concurrent calls for transcripts, uploads and job results, over HTTP, messages and MCP: of the process, and of each key over all replicas while Redis is available. The count of the
 * process always applies as well, so that nothing has to be restored when Redis becomes unavailable.
 */
@Injectable()
export class CallsInFlight implements BeforeApplicationShutdown {
  private total = 0;
  private readonly byKey = new Map<string, number>();
  private readonly releasing = new Set<Promise<void>>();
  private readonly closing = new AbortController();

  constructor(
    private readonly shared: SharedCounts,
    private readonly environment: Environment,
    private readonly metrics: RejectionMetrics,
    @Optional() private readonly leaseMs: number = LEASE_MS,
  ) {}

  /** Calls that are running in this process. */
  get count(): number {
    return this.total;
  }

  /**
   * Acquires a slot for a call until `ended` resolves.
   *
   * @throws ConcurrencyLimitReachedError for the key, ServiceAtCapacityError for the process
   */
  async acquire(keyId: string, ended: Promise<void>): Promise<void> {
    const { CALLS_PER_KEY, CALLS_PER_PROCESS } = this.environment;
    if (CALLS_PER_KEY > 0 && (this.byKey.get(keyId) ?? 0) >= CALLS_PER_KEY) throw this.tooManyOfKey();
    if (CALLS_PER_PROCESS > 0 && this.total >= CALLS_PER_PROCESS) throw this.tooManyOfProcess();
    // Before the first await, so that no two calls acquire the same last slot.
    this.change(keyId, 1);
    let acquired = true;
    const release = (): void => {
      if (acquired) this.change(keyId, -1);
      acquired = false;
    };
    // Before the first await, so that no failure below can leak the slot.
    void ended.then(release);
    if (CALLS_PER_KEY === 0 || !this.shared.configured) return;
    const callId = randomUUID();
    const [granted] = (await this.shared.run(ACQUIRE, nameOf(keyId), [CALLS_PER_KEY, this.leaseMs, callId])) ?? [];
    if (granted === 0) {
      release();
      throw this.tooManyOfKey();
    }
    // Also without a reply: Redis may have acquired the slot before the connection failed.
    this.renewUntil(ended, keyId, callId);
  }

  /** Releases the slots in Redis before the connection closes. */
  async beforeApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.releasing);
  }

  /** Renews a call's slot in Redis while the call runs, then releases it. A slow reader can outlast any lease. */
  private renewUntil(ended: Promise<void>, keyId: string, callId: string): void {
    let renewing = Promise.resolve();
    const renewals = setInterval(() => {
      renewing = this.shared.run(RENEW, nameOf(keyId), [this.leaseMs, callId]).then(() => undefined);
    }, this.leaseMs / RENEWALS_PER_LEASE);
    renewals.unref();
    void ended.then(() => {
      clearInterval(renewals);
      // After the last renewal, which would acquire the slot again.
      const releasing = renewing
        .then(() => this.releaseShared(keyId, callId))
        .finally(() => this.releasing.delete(releasing));
      this.releasing.add(releasing);
    });
  }

  /** Retries until the lease ends, so that the key does not stay short of a slot after an outage of Redis. */
  private async releaseShared(keyId: string, callId: string): Promise<void> {
    const leaseEndsAtMs = performance.now() + this.leaseMs;
    while (!(await this.shared.run(RELEASE, nameOf(keyId), [callId]))) {
      if (this.closing.signal.aborted || performance.now() > leaseEndsAtMs) return;
      await sleep(RELEASE_RETRY_MS, undefined, { ref: false, signal: this.closing.signal }).catch(() => undefined);
    }
  }

  private tooManyOfKey(): ConcurrencyLimitReachedError {
    this.metrics.count('key_in_flight');
    return new ConcurrencyLimitReachedError(this.environment.CALLS_PER_KEY, RETRY_AFTER_SECONDS);
  }

  private tooManyOfProcess(): ServiceAtCapacityError {
    this.metrics.count('process_in_flight');
    return new ServiceAtCapacityError(RETRY_AFTER_SECONDS);
  }

  private change(keyId: string, by: 1 | -1): void {
    this.total += by;
    const count = (this.byKey.get(keyId) ?? 0) + by;
    if (count > 0) this.byKey.set(keyId, count);
    else this.byKey.delete(keyId);
  }
}

/** Refuses a call at the concurrency limit of its key (429) or of the process (503). */
@Injectable()
export class CallsInFlightGuard implements CanActivate {
  constructor(private readonly calls: CallsInFlight) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const call = requestContextOf(context);
    await this.calls.acquire(call.caller.keyId, call.ended());
    return true;
  }
}

function nameOf(keyId: string): string {
  return `ct:calls:${keyId}`;
}

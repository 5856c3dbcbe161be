import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Optional, type BeforeApplicationShutdown } from '@nestjs/common';
import { SharedCounts } from '../cache/shared-counts.js';
import { Environment } from '../config/environment.js';
import { ConcurrencyLimitReachedError, ServiceAtCapacityError } from '../domain/errors.js';
import { RejectionCounts } from './rejection-counts.js';

/** Nobody knows when a call that runs will end; this is a pause that does not hammer. */
const RETRY_AFTER_SECONDS = 2;
/** How long a slot in Redis outlives a process that was killed. A running call renews it. */
const LEASE_MS = 60_000;
/** A renewal may fail twice in a row, when Redis is unavailable for a moment, before the lease ends. */
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

/** Takes the slot again when Redis lost it: the call is running, whatever the limit says. */
const RENEW = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return { 1 }`;

const RELEASE = `return { redis.call('ZREM', KEYS[1], ARGV[1]) }`;

/**
 * Counts the calls that run: those of the process, and those of each key over all replicas while Redis counts. The
 * process's own count is always kept and always holds, so that nothing has to be carried over when Redis goes away.
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
    private readonly events: RejectionCounts,
    @Optional() private readonly leaseMs: number = LEASE_MS,
  ) {}

  /** Calls of the process that run now. */
  get count(): number {
    return this.total;
  }

  /**
   * Takes a place for a call until `ended` resolves.
   *
   * @throws ConcurrencyLimitReachedError for the key, ServiceAtCapacityError for the process
   */
  async acquire(keyId: string, ended: Promise<void>): Promise<void> {
    const { CALLS_PER_KEY, CALLS_PER_PROCESS } = this.environment;
    if (CALLS_PER_KEY > 0 && (this.byKey.get(keyId) ?? 0) >= CALLS_PER_KEY) throw this.tooManyOfKey();
    if (CALLS_PER_PROCESS > 0 && this.total >= CALLS_PER_PROCESS) throw this.tooManyOfProcess();
    // Taken before anything is waited for, so that no two calls see the same last place.
    this.change(keyId, 1);
    let entered = true;
    const release = (): void => {
      if (entered) this.change(keyId, -1);
      entered = false;
    };
    // Before anything is waited for: nothing below can keep the slot from being freed.
    void ended.then(release);
    if (CALLS_PER_KEY === 0 || !this.shared.configured) return;
    const callId = randomUUID();
    const [granted] = (await this.shared.run(ACQUIRE, nameOf(keyId), [CALLS_PER_KEY, this.leaseMs, callId])) ?? [];
    if (granted === 0) {
      release();
      throw this.tooManyOfKey();
    }
    // Also when there was no reply: the slot may have been taken all the same.
    this.renewUntil(ended, keyId, callId);
  }

  /** Places are given back before the connection is closed. */
  async beforeApplicationShutdown(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.releasing);
  }

  /** Renews a call's slot in Redis for as long as the call runs, then frees it. A slow reader can outlast any lease. */
  private renewUntil(ended: Promise<void>, keyId: string, callId: string): void {
    let renewing = Promise.resolve();
    const renewals = setInterval(() => {
      renewing = this.shared.run(RENEW, nameOf(keyId), [this.leaseMs, callId]).then(() => undefined);
    }, this.leaseMs / RENEWALS_PER_LEASE);
    renewals.unref();
    void ended.then(() => {
      clearInterval(renewals);
      // After the last renewal, which would take the slot again.
      const releasing = renewing
        .then(() => this.releaseShared(keyId, callId))
        .finally(() => this.releasing.delete(releasing));
      this.releasing.add(releasing);
    });
  }

  /** Tries until the slot's lease has ended, so that its key does not lose it when Redis was unavailable for a moment. */
  private async releaseShared(keyId: string, callId: string): Promise<void> {
    const leaseEndsAtMs = performance.now() + this.leaseMs;
    while (!(await this.shared.run(RELEASE, nameOf(keyId), [callId]))) {
      if (this.closing.signal.aborted || performance.now() > leaseEndsAtMs) return;
      await sleep(RELEASE_RETRY_MS, undefined, { ref: false, signal: this.closing.signal }).catch(() => undefined);
    }
  }

  private tooManyOfKey(): ConcurrencyLimitReachedError {
    this.events.count('key_in_flight');
    return new ConcurrencyLimitReachedError(this.environment.CALLS_PER_KEY, RETRY_AFTER_SECONDS);
  }

  private tooManyOfProcess(): ServiceAtCapacityError {
    this.events.count('process_in_flight');
    return new ServiceAtCapacityError(RETRY_AFTER_SECONDS);
  }

  private change(keyId: string, by: 1 | -1): void {
    this.total += by;
    const count = (this.byKey.get(keyId) ?? 0) + by;
    if (count > 0) this.byKey.set(keyId, count);
    else this.byKey.delete(keyId);
  }
}

function nameOf(keyId: string): string {
  return `ct:calls:${keyId}`;
}

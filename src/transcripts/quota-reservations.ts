import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { QuotaState } from '../domain/errors.js';
import type { RequestContext } from '../http/request-context.js';
import { QuotaService } from '../quota/quota.service.js';
import { CallEnded, type Call } from './call.js';

/** Who is charged for a call, and the id by which the caller knows it. */
export interface Payer {
  organizationId: string;
  keyId: string;
  requestId: string;
}

/** The payer of an authenticated call. */
export function payerOf({ caller, requestId }: Pick<RequestContext, 'caller' | 'requestId'>): Payer {
  return { organizationId: caller.organization.id, keyId: caller.keyId, requestId };
}

/** Reserved quota. It has to be settled before its lease ends, in milliseconds of `performance.now()`. */
export interface OpenReservation {
  id: string;
  leaseEndsAtMs: number;
}

/**
 * Settles a reservation after its fetching has ended: charges `fetched` transcripts and releases the rest. Never rejects.
 *
 * @param reservation undefined when nothing was reserved
 */
export type Settle = (reservation: OpenReservation | undefined, fetched: number) => Promise<void>;

export interface ReservationResult {
  /** Undefined when nothing was required or too little quota remains. */
  reservation: OpenReservation | undefined;
  /** The state of the quota, this reservation included. */
  quota: QuotaState;
}

/** Seconds that a lease outlasts the deadline of its call, for the settlement. */
const LEASE_MARGIN_SECONDS = 15;

/** Reserves quota for calls and settles it. Tracks the work that ends with a settlement, for the shutdown. */
@Injectable()
export class QuotaReservations {
  private readonly running = new Set<Promise<unknown>>();

  constructor(
    private readonly quota: QuotaService,
    private readonly environment: Environment,
  ) {}

  /**
   * Reserves `required` transcripts for the length of a call.
   *
   * @param resource what the call is about, stored for support
   * @throws CallEnded when the call ends first; a reservation that is granted afterwards is released
   */
  async reserve(payer: Payer, resource: string, required: number, call: Call): Promise<ReservationResult> {
    // Reading the state neither waits for the organization's lock nor leaves a row.
    if (required === 0)
      return { reservation: undefined, quota: await call.within(this.quota.state(payer.organizationId)) };
    const leaseSeconds = this.environment.REQUEST_DEADLINE_SECONDS + LEASE_MARGIN_SECONDS;
    const leaseEndsAtMs = performance.now() + leaseSeconds * 1000;
    const reserving = this.quota.reserve({ ...payer, resource, required, leaseSeconds }).then((result) => ({
      reservation: result.granted ? { id: result.id, leaseEndsAtMs } : undefined,
      quota: result.quota,
    }));
    return call.within(reserving).catch((error: unknown) => {
      // What is granted after the end of the call must not count until its lease ends.
      const release = ({ reservation }: ReservationResult): Promise<void> => this.settle(reservation, 0);
      if (error instanceof CallEnded) void this.track(reserving.then(release, () => undefined));
      throw error;
    });
  }

  /** Settles by itself, with retries while the lease lives. */
  readonly settle: Settle = async (reservation, fetched) => {
    if (reservation) await this.quota.settleWithRetry(reservation.id, fetched, reservation.leaseEndsAtMs);
  };

  /** Makes `idle` wait for work that ends with a settlement. */
  track<T>(work: Promise<T>): Promise<T> {
    const running = work.finally(() => this.running.delete(running));
    this.running.add(running);
    return running;
  }

  /** Resolves when all tracked work has ended. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.allSettled(this.running);
  }
}

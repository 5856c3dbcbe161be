import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
import { Environment } from '../config/environment.js';
import type { QuotaState } from '../domain/errors.js';
import { QuotaService, type Reservation, type ReservationRequest } from '../quota/quota.service.js';
import { Call, CallEnded } from './call.js';
import { QuotaReservations } from './quota-reservations.js';

const PAYER = { organizationId: 'organization', keyId: 'key', requestId: 'request' };

/** Grants what fits into `limit`, once `ready` has resolved. */
class FakeQuota {
  readonly required: number[] = [];
  readonly settled: [string, number][] = [];
  ready: Promise<unknown> = Promise.resolve();

  constructor(private readonly limit: number) {}

  async reserve({ required }: ReservationRequest): Promise<Reservation> {
    this.required.push(required);
    await this.ready;
    const now = new Date(0);
    const quota: QuotaState = { limit: this.limit, used: 0, reserved: 0, resetAt: now, asOf: now };
    return required <= this.limit ? { granted: true, id: 'reservation', quota } : { granted: false, quota };
  }

  settleWithRetry(reservationId: string, fetched: number): Promise<boolean> {
    this.settled.push([reservationId, fetched]);
    return Promise.resolve(true);
  }
}

async function reservationsOf(quota: FakeQuota): Promise<QuotaReservations> {
  const module = await Test.createTestingModule({
    providers: [
      QuotaReservations,
      { provide: QuotaService, useValue: quota },
      { provide: Environment, useValue: new Environment() },
    ],
  }).compile();
  module.useLogger(false);
  return module.get(QuotaReservations);
}

describe('QuotaReservations', () => {
  it('releases a reservation that is granted after the call has ended, before it is idle', async () => {
    const quota = new FakeQuota(5);
    let grant = (): void => undefined;
    quota.ready = new Promise<void>((resolve) => (grant = resolve));
    const reservations = await reservationsOf(quota);
    const call = new Call(60);
    const reserving = reservations.reserve(PAYER, 'UC', 2, call);
    call.disconnect();
    await expect(reserving).rejects.toBeInstanceOf(CallEnded);
    const idle = reservations.idle();
    expect(quota.settled).toEqual([]);
    grant();
    await idle;
    expect(quota.settled).toEqual([['reservation', 0]]);
  });
});

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

async function withCall<T>(run: (call: Call) => Promise<T>): Promise<T> {
  const call = new Call(60);
  try {
    return await run(call);
  } finally {
    call.finish();
  }
}

describe('QuotaReservations', () => {
  it('reserves as many transcripts as remain when all of them are too many', async () => {
    const quota = new FakeQuota(3);
    const reservations = await reservationsOf(quota);
    const result = await withCall((call) => reservations.reserveUpTo(10, PAYER, 'UC', call));
    expect(result).toMatchObject({ reservation: { id: 'reservation' }, granted: 3 });
    expect(quota.required).toEqual([10, 3]);
  });

  it('reserves none when none remain or the database fails', async () => {
    const empty = await reservationsOf(new FakeQuota(0));
    const none = { reservation: undefined, granted: 0 };
    expect(await withCall((call) => empty.reserveUpTo(2, PAYER, 'UC', call))).toEqual(none);
    const failing = new FakeQuota(5);
    failing.ready = Promise.reject(new Error('The database is unavailable.'));
    const reservations = await reservationsOf(failing);
    expect(await withCall((call) => reservations.reserveUpTo(2, PAYER, 'UC', call))).toEqual(none);
  });

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

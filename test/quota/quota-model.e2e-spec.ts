import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Customer, QuotaDatabase } from './quota-database.js';
import { QuotaModel } from './quota-model.js';

const START = new Date('2026-05-31T23:59:00Z');
const LEASE_SECONDS = 60;
const SEARCH_MS = 8_000;

type Step =
  | { do: 'reserve'; required: number }
  | { do: 'settle'; which: number; fetched: number }
  | { do: 'wait'; seconds: number }
  | { do: 'limit'; limit: number };

const count = fc.integer({ min: 0, max: 12 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('reserve' as const), required: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(20), fetched: count }) },
  // The clock steps back when it is set, or after a failover to another server.
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(-30, 1, 30, 60, 300) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), limit: fc.integer({ min: 0, max: 20 }) }) },
);

let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
afterAll(() => database.close());

describe('any sequence of reservations, settlements, waits and changes of the limit', () => {
  it(
    'matches a reference model after each step',
    async () => {
      await fc.assert(
        fc.asyncProperty(count, fc.array(step, { minLength: 5, maxLength: 40 }), async (limit, steps) => {
          await database.clock.stop(START);
          const customer = await database.newCustomer(limit);
          const model = new QuotaModel(START.getTime(), limit, LEASE_SECONDS);
          const ids: string[] = [];
          for (const one of steps) {
            await take(one, customer, model, ids);
            expect(await database.quota.usage(customer.organizationId)).toMatchObject(model.counts());
          }
          expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
        }),
        { numRuns: 80, interruptAfterTimeLimit: SEARCH_MS, markInterruptAsFailure: false },
      );
    },
    SEARCH_MS * 3,
  );
});

async function take(one: Step, customer: Customer, model: QuotaModel, ids: string[]): Promise<void> {
  switch (one.do) {
    case 'reserve': {
      const { granted, reservation } = await database.reserve(customer, one.required, LEASE_SECONDS);
      expect(granted).toBe(model.reserve(one.required));
      if (reservation) ids.push(reservation.id);
      return;
    }
    case 'settle': {
      const index = ids.length === 0 ? 0 : one.which % ids.length;
      const id = ids[index];
      if (id === undefined) return;
      await database.quota.settle(id, one.fetched);
      model.settle(index, one.fetched);
      return;
    }
    case 'wait':
      await database.clock.move(one.seconds);
      model.wait(one.seconds);
      return;
    case 'limit':
      await database.organizations.change(customer.organizationId, { monthlyLimit: one.limit });
      model.limit = one.limit;
  }
}

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Customer, QuotaDatabase } from './quota-database.js';
import { QuotaModel } from './quota-model.js';

const START = new Date('2026-05-31T23:59:00Z');
const LEASE_SECONDS = 60;
const SEARCH_MS = 8_000;

type Step =
  | { do: 'reserve'; required: number; key: number }
  | { do: 'rotate' }
  | { do: 'settle'; which: number; fetched: number }
  | { do: 'wait'; seconds: number }
  | { do: 'limit'; limit: number };

const count = fc.integer({ min: 0, max: 12 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      required: fc.integer({ min: 1, max: 12 }),
      key: fc.nat(3),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(20), fetched: count }) },
  // The clock steps back when it is set, or after a failover to another server.
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(-30, 1, 30, 60, 300) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rotate' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), limit: fc.integer({ min: 0, max: 20 }) }) },
);

let database: QuotaDatabase;
beforeAll(async () => {
  database = await QuotaDatabase.open();
});
afterAll(() => database.close());

/** What the steps of one run have made. */
interface Run {
  customer: Customer;
  /** The key with a limit and those that it was rotated to. */
  limitedKeys: string[];
  model: QuotaModel;
  /** Of the reservations. */
  ids: string[];
}

async function newRun(limit: number, keyLimit: number): Promise<Run> {
  await database.clock.stop(START);
  const customer = await database.newCustomer(limit);
  await database.listen(customer);
  const { id } = await database.keys.issue({ organizationId: customer.organizationId, monthlyLimit: keyLimit });
  const model = new QuotaModel(START.getTime(), limit, LEASE_SECONDS, keyLimit);
  return { customer, limitedKeys: [id], model, ids: [] };
}

describe('any sequence of reservations, settlements, waits, rotations and changes of the limit', () => {
  it(
    'matches a reference model after each step',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.nat(40),
          count,
          fc.array(step, { minLength: 5, maxLength: 40 }),
          async (limit, ofKey, steps) => {
            const run = await newRun(limit, ofKey);
            const { customer, limitedKeys, model } = run;
            for (const one of steps) {
              await take(one, run);
              const usage = await database.quota.usage(customer.organizationId, limitedKeys.at(-1));
              expect(usage).toMatchObject({ ...model.counts(), key: model.keyCounts() });
              expect(await database.thresholdEvents(customer)).toEqual(model.events);
            }
            const verification = await database.quota.verify(customer.organizationId);
            expect(verification.exact).toBe(true);
            expect(new Set(verification.keys?.map(({ key }) => key)).size).toBeLessThanOrEqual(1);
          },
        ),
        { numRuns: 80, interruptAfterTimeLimit: SEARCH_MS, markInterruptAsFailure: false },
      );
    },
    SEARCH_MS * 3,
  );
});

async function take(one: Step, { customer, limitedKeys, model, ids }: Run): Promise<void> {
  switch (one.do) {
    case 'reserve': {
      const limitedKey = one.key === 0 ? undefined : limitedKeys[one.key % limitedKeys.length];
      const payer = { ...customer, keyId: limitedKey ?? customer.keyId };
      const { granted, reservation } = await database.reserve(payer, one.required, LEASE_SECONDS);
      expect(granted).toBe(model.reserve(one.required, limitedKey !== undefined));
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
    case 'rotate':
      limitedKeys.push((await database.keys.rotate(limitedKeys.at(-1) ?? '', 24)).id);
      return;
    case 'limit':
      await database.organizations.change(customer.organizationId, { monthlyLimit: one.limit });
      model.limit = one.limit;
  }
}

import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Customer, QuotaDatabase } from '../quota/quota-database.js';
import { Program } from './program.js';

// Two services are started and called over a hundred times.
jest.setTimeout(120_000);

const CALLS = 60;
const USED_BEFORE = 5;

let database: QuotaDatabase;
let fakeYoutube: FakeYoutube;
const services: Program[] = [];
const urls: string[] = [];
beforeAll(async () => {
  database = await QuotaDatabase.open();
  fakeYoutube = await startFakeYoutube();
  const variables = {
    DATABASE_URL: database.url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    RATE_LIMIT_PER_MINUTE: '0',
    CALLS_PER_KEY: '0',
    CALLS_PER_PROCESS: '0',
    UPSTREAM_CONCURRENCY: String(CALLS),
  };
  services.push(Program.run('main.js', variables), Program.run('main.js', variables));
  urls.push(...(await Promise.all(services.map((service) => service.url()))));
});
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop('SIGKILL')));
  await fakeYoutube.close();
  await database.close();
});

let channels = 0;

/** A call that needs one transcript: the channel has one video, which is not cached. */
async function call(index: number, key: string): Promise<{ status: number; fetched: number }> {
  const path = `/channels/@bench-1x${(channels += 1)}/transcripts`;
  const response = await fetch(`${urls[index % 2]}${path}`, { headers: { Authorization: `Bearer ${key}` } });
  const body = (await response.json()) as { summary?: { fetched: number } };
  return { status: response.status, fetched: body.summary?.fetched ?? 0 };
}

async function customerWithKey(monthlyLimit: number): Promise<Customer & { key: string }> {
  const customer = await database.newCustomer(monthlyLimit);
  const { key } = await database.keys.issue(customer);
  return { ...customer, key };
}

describe(`${CALLS} concurrent calls over two processes`, () => {
  it.each([0, 1, 37])(
    'with a remaining quota of %i: exactly that many are served and charged, the others are 402',
    async (left) => {
      const customer = await customerWithKey(USED_BEFORE + left);
      await database.quota.settle(await database.reserved(customer, USED_BEFORE), USED_BEFORE);
      // All are held at the listing of the channel, so that they reach the reservation concurrently.
      const hold = fakeYoutube.hold({ kind: 'browse-uploads' }, CALLS);
      const calls = Array.from({ length: CALLS }, (_, index) => call(index, customer.key));
      await hold.arrived;
      hold.release();
      const responses = await Promise.all(calls);
      const served = responses.filter(({ status }) => status === 200);
      expect(served).toEqual(Array<unknown>(left).fill({ status: 200, fetched: 1 }));
      expect(responses.filter(({ status }) => status === 402)).toHaveLength(CALLS - left);
      expect(await database.quota.usage(customer.organizationId)).toMatchObject({
        used: USED_BEFORE + left,
        reserved: 0,
        remaining: 0,
      });
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({
        exact: true,
        periods: [{ used: USED_BEFORE + left, settledCalls: 1 + left }],
      });
    },
  );
});

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createTestDatabase, runQuery } from './test-database.js';

/** A role of this file alone, so that it can be locked out. */
const ROLE = `caller_${randomBytes(6).toString('hex')}`;

let service: TestService;
let customer: TestOrganization;
let database: string;
let calls = 0;

beforeAll(async () => {
  service = await startService({
    databaseUrl: async (text) => {
      const url = new URL(text);
      database = url.pathname.slice(1);
      await runQuery(text, `CREATE ROLE ${ROLE} LOGIN PASSWORD 'secret-of-the-test'`);
      await runQuery(text, `GRANT CREATE ON SCHEMA public TO ${ROLE}`);
      // For the extension btree_gin.
      await runQuery(text, `GRANT CREATE ON DATABASE ${database} TO ${ROLE}`);
      [url.username, url.password] = [ROLE, 'secret-of-the-test'];
      return url.href;
    },
  });
  customer = await service.organization({ monthlyLimit: 1_000 });
});
afterAll(async () => {
  await service.close();
  const other = await createTestDatabase();
  await runQuery(other.url, `DROP ROLE ${ROLE}`);
  await other.drop();
});

/** Connects to another database, since this one may refuse every connection. */
const request = (statement: string): Promise<unknown> => runQuery(process.env['TEST_DATABASE_URL'] ?? '', statement);
const disconnect = (): Promise<unknown> =>
  request(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${database}'`);

/** For a channel that is not cached. */
const call = (): Promise<ServiceResponse> => {
  calls += 1;
  return service.get(`/channels/@3-videos-no-${calls}/transcripts`, customer.key);
};

async function expectUnavailable(response: ServiceResponse): Promise<void> {
  expect([response.status, response.body?.error]).toMatchObject([
    503,
    { code: 'service_unavailable', retryable: true },
  ]);
  expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
  await until(async () => (await service.request('GET', '/health/ready')).status === 503);
  const { dependencies } = (await service.request('GET', '/health/ready')).body;
  expect(dependencies.database.status).toBe('down');
}

/** A call succeeds, and all calls are charged exactly. */
async function expectRecovered(usedBefore: number, fetched = 3): Promise<void> {
  let response = await call();
  await until(async () => response.status === 200 || (response = await call()).status === 200);
  await until(async () => (await usage()).reserved === 0);
  expect(await usage()).toMatchObject({ used: usedBefore + fetched, reserved: 0 });
}

const usage = async (): Promise<{ used: number; reserved: number }> =>
  (await service.get('/usage', customer.key)).body as { used: number; reserved: number };

describe('a database that refuses the login', () => {
  it.each([
    ['of the role (28000)', () => `ALTER ROLE ${ROLE} NOLOGIN`, () => `ALTER ROLE ${ROLE} LOGIN`],
    [
      'of everybody (55000)',
      () => `ALTER DATABASE ${database} ALLOW_CONNECTIONS false`,
      () => `ALTER DATABASE ${database} ALLOW_CONNECTIONS true`,
    ],
  ])('%s is 503, and calls work again without a restart', async (_case, strike, heal) => {
    const { used } = await usage();
    await request(strike());
    await disconnect();
    try {
      await expectUnavailable(await call());
    } finally {
      await request(heal());
    }
    await expectRecovered(used);
  });
});

describe('a database server that became read-only', () => {
  it('makes calls 503 and the service not ready, until it accepts writes again', async () => {
    const { used } = await usage();
    await request(`ALTER ROLE ${ROLE} SET default_transaction_read_only = on`);
    await disconnect();
    await until(async () => (await service.get('/usage', customer.key)).status === 200);
    await expectUnavailable(await call());
    await request(`ALTER ROLE ${ROLE} RESET default_transaction_read_only`);
    await disconnect();
    await expectRecovered(used);
  });
});

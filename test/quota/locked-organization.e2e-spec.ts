import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { holdLock } from '../database/lock-table.js';
import { DATABASE_TIMEOUTS } from '../../src/database/query-with-deadline.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

let service: TestService;
beforeAll(async () => {
  // All others stay wide: on a busy machine they would end calls that do not wait for a lock.
  DATABASE_TIMEOUTS.lockMs = 300;
  service = await startService({
    environment: { CALLS_PER_KEY: 0, CALLS_PER_ORGANIZATION: 0, RATE_LIMIT_PER_MINUTE: 0 },
  });
});
afterAll(() => service.close());

const lock = (statement: string): Promise<() => Promise<void>> => holdLock(service.databaseUrl, statement);

const waiting = (): Promise<Record<string, unknown>[]> =>
  service.query("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'");

const call = (organization: TestOrganization, index: number) =>
  service.get(`/channels/@1-videos-no-${index}/transcripts`, organization.key);

describe('an organization whose row is locked', () => {
  it('costs its own calls a 503, and others are served when the lock times out', async () => {
    const [locked, other] = [await service.organization(), await service.organization()];
    const release = await lock(`SELECT 1 FROM organizations WHERE id = '${locked.id}' FOR UPDATE`);
    const calls = Promise.all(Array.from({ length: 10 }, (_call, index) => call(locked, index + 1)));
    await until(async () => (await waiting()).length > 0);
    const responses = await Promise.all([
      service.get('/usage', other.key),
      service.get('/usage', locked.key),
      ...Array.from({ length: 5 }, (_call, index) => call(other, index + 100)),
    ]);
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    expect((await calls).map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 503));
    await release();
    await until(async () => (await waiting()).length === 0);
    await until(async () => (await service.get('/usage', locked.key)).body.reserved === 0);
    expect((await call(locked, 1)).status).toBe(200);
  });

  it('keeps two connections at a time, so that the cached calls of others do not wait', async () => {
    const [locked, other] = [await service.organization(), await service.organization()];
    await call(other, 200);
    const release = await lock(`SELECT 1 FROM organizations WHERE id = '${locked.id}' FOR UPDATE`);
    const most = { waiting: 0, served: 0 };
    let ended = false;
    const calls = Promise.all(Array.from({ length: 20 }, (_call, index) => call(locked, index + 20))).finally(() => {
      ended = true;
    });
    await until(async () => (await waiting()).length > 0);
    while (!ended) {
      const { body } = await call(other, 200);
      if (body.summary.cached === 1 && !ended) most.served++;
      most.waiting = Math.max(most.waiting, (await waiting()).length);
    }
    expect((await calls).map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 503));
    expect(most.waiting).toBe(2);
    expect(most.served).toBeGreaterThan(5);
    await release();
    await until(async () => (await service.get('/usage', locked.key)).body.reserved === 0);
    expect((await call(locked, 20)).status).toBe(200);
  });

  it('keeps two connections at a time also to create jobs', async () => {
    const locked = await service.organization();
    const release = await lock(`SELECT 1 FROM organizations WHERE id = '${locked.id}' FOR UPDATE`);
    const headers = { Authorization: `Bearer ${locked.key}`, 'Content-Type': 'application/json' };
    const create = () => service.request('POST', '/jobs', headers, JSON.stringify({ channel: '@1-videos-no-1' }));
    let ended = false;
    let most = 0;
    const created = Promise.all(Array.from({ length: 8 }, create)).finally(() => {
      ended = true;
    });
    await until(async () => (await waiting()).length > 0);
    while (!ended) most = Math.max(most, (await waiting()).length);
    expect((await created).map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 503));
    expect(most).toBe(2);
    await release();
    await until(async () => (await waiting()).length === 0);
    expect((await create()).status).toBe(202);
  });

  it('keeps no connection waiting to record the last use of its locked keys', async () => {
    const customers = await Promise.all(Array.from({ length: 12 }, () => service.organization()));
    const release = await lock('SELECT 1 FROM api_keys FOR UPDATE');
    const answers = await Promise.all(customers.map(({ key }) => service.get('/usage', key)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await waiting()).toEqual([]);
    await release();
  });
});

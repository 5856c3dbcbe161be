import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';
import { PgBouncer, pgbouncerIsInstalled } from './pgbouncer.js';
import { runQuery } from './test-database.js';

const describeWith = pgbouncerIsInstalled ? describe : describe.skip;
const suffix = pgbouncerIsInstalled ? '' : ' (skipped: there is no pgbouncer on this machine)';

describeWith(`a service behind PgBouncer in session pooling${suffix}`, () => {
  let bouncer: PgBouncer;
  let service: TestService;
  beforeAll(async () => {
    bouncer = await PgBouncer.start(process.env['TEST_DATABASE_URL'] ?? '', { pool_mode: 'session' });
    service = await startService({
      databaseUrl: async (url) => {
        const name = new URL(url).pathname.slice(1);
        await runQuery(url, `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
        return bouncer.url(url);
      },
      // Polling `/usage` exceeds the default limit.
      environment: { RATE_LIMIT_PER_MINUTE: 0 },
    });
  });
  afterAll(async () => {
    await service.close();
    await bouncer.stop();
  });

  it('runs every statement with its timeouts and its isolation level', async () => {
    const inForce = `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
      current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('transaction_isolation') AS isolation`;
    expect(await service.app.get(DataSource).query(inForce)).toEqual([
      { statement: '5s', lock: '750ms', idle: '15s', isolation: 'read committed' },
    ]);
  });

  it('serves concurrent calls and charges each exactly', async () => {
    const { id, key } = await service.organization({ monthlyLimit: 1_000 });
    const calls = Array.from({ length: 5 }, (_call, index) => `/channels/@bench-3x${index + 1}/transcripts`);
    const responses = await Promise.all(calls.map((path) => service.get(path, key)));
    expect(responses.map(({ status }) => status)).toEqual(calls.map(() => 200));
    await until(async () => (await service.get('/usage', key)).body.reserved === 0);
    expect((await service.get('/usage', key)).body).toMatchObject({ organization: id, used: 15, reserved: 0 });
  });
});

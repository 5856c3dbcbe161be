import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { Environment } from '../../src/config/environment.js';
import { openDatabase, type OpenDatabase } from '../../src/database/data-source.js';
import { runMigrations } from '../../src/database/migrations.js';
import { MIGRATIONS } from '../../src/database/migrations/all-migrations.js';
import { CreateJobSlices1763683209000 } from '../../src/database/migrations/create-job-slices.js';
import { CreateJobs1763683208000 } from '../../src/database/migrations/create-jobs.js';
import { ApiKey } from '../../src/organizations/api-key.entity.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { LastUsedRecorder } from '../../src/organizations/last-used-recorder.js';
import { Organization } from '../../src/organizations/organization.entity.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaMetrics } from '../../src/quota/quota-metrics.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { createTestDatabase, runQuery, type TestDatabase } from '../database/test-database.js';

const BEFORE_JOBS = MIGRATIONS.filter(({ name }) => !/Job|Webhook/.test(name));
const OBJECTS_OF_JOBS = `
  SELECT relname AS name FROM pg_class WHERE relname LIKE 'job%' AND relnamespace = 'public'::regnamespace
  UNION ALL SELECT proname FROM pg_proc WHERE proname LIKE 'job%' AND pronamespace = 'public'::regnamespace`;

describe('the migrations of jobs', () => {
  let database: TestDatabase;
  let earlier: OpenDatabase;

  beforeEach(async () => {
    database = await createTestDatabase();
    const environment = Object.assign(new Environment(), { DATABASE_URL: database.url });
    earlier = await openDatabase(environment, {
      as: 'service',
      entities: [Organization, ApiKey],
      migrations: BEFORE_JOBS,
    });
  });

  afterEach(async () => {
    await earlier.close();
    await database.drop();
  });

  it('leave a process of the release before running, which can also start again', async () => {
    const { dataSource } = earlier;
    const organizations = new OrganizationsService(dataSource);
    const keys = new ApiKeysService(dataSource, new LastUsedRecorder(dataSource));
    const quota = new QuotaService(dataSource, new Environment(), new QuotaMetrics(new Registry()));
    const { id } = await organizations.create({ name: 'Acme', plan: 'pro' });
    const { apiKey } = await keys.issue({ organizationId: id });
    const request = {
      organizationId: id,
      keyId: apiKey.id,
      requestId: 'r',
      resource: 'UC',
      required: 3,
      leaseSeconds: 60,
    };
    const reservation = await quota.reserve(request);

    await runMigrations(database.url, MIGRATIONS);
    await runMigrations(database.url, BEFORE_JOBS);
    if (reservation.granted) await quota.settle(reservation.id, 2);
    expect((await quota.reserve(request)).granted).toBe(true);
    expect(await quota.usage(id)).toMatchObject({ used: 2, reserved: 3 });
    await runQuery(
      database.url,
      `SELECT job_create('job_1', '${id}', '${apiKey.id}', NULL, '', '@a', '{}', NULL, NULL, 'pause', 5, 5, 1)`,
    );
    expect(await organizations.delete(id)).toMatchObject({ revokedKeys: 1 });
    expect(await quota.verify(id)).toMatchObject({ exact: true });
  });

  it('can be undone and repeated', async () => {
    await runMigrations(database.url, MIGRATIONS);
    const before = await runQuery(database.url, OBJECTS_OF_JOBS);
    expect(before.length).toBeGreaterThan(10);
    const runner = earlier.dataSource.createQueryRunner();
    const migrations = [new CreateJobs1763683208000(), new CreateJobSlices1763683209000()] as const;
    await migrations[1].down(runner);
    await migrations[0].down(runner);
    expect(await runQuery(database.url, OBJECTS_OF_JOBS)).toEqual([]);
    for (const migration of migrations) await migration.up(runner);
    await runner.release();
    expect(await runQuery(database.url, OBJECTS_OF_JOBS)).toEqual(before);
  });
});

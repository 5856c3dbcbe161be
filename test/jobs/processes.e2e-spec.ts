import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';
import { JobRun } from './job-run.js';

describe('an archive job of a process that runs no slices', () => {
  let service: TestService;
  let other: TestService;
  beforeAll(async () => {
    service = await startService({ environment: { JOB_CONCURRENCY: 0 } });
    other = await startService({
      databaseUrl: () => Promise.resolve(service.databaseUrl),
      environment: { JOB_SWEEP_SECONDS: 1 },
    });
  });
  afterAll(async () => {
    await other.close();
    await service.close();
  });

  it('is run by another process of the same database', async () => {
    const run = await JobRun.create(service, await service.organization(), '@bench-30x1');
    await run.until('completed');
    expect((await run.verify()).summary).toMatchObject({ total: 30, fetched: 30 });
    expect(service.logs.join('')).not.toContain('"event":"slice_finished"');
    expect(other.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(30);
  });
});

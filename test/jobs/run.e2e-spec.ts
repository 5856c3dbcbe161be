import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';
import { JobRun } from './job-run.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

describe('an archive job', () => {
  it('stores the entries of the whole channel in its order, as a call returns them, and charges each transcript once', async () => {
    const organization = await service.organization();
    const run = await JobRun.create(service, organization, '@fogsignalradio');
    const job = await run.until('completed');
    expect(job).toMatchObject({
      channel: { handle: '@fogsignalradio' },
      reason: null,
      checkAgainSeconds: null,
      summary: { total: 230, pending: 0 },
    });
    await run.verify();
    const entries = await run.entries();
    expect(entries.map(({ position }) => position)).toEqual(entries.map((_, index) => index + 1));
    const call = await service.get('/channels/@fogsignalradio/transcripts?limit=100', organization.key);
    expect(entries.slice(0, 100).map(({ entry }) => ({ ...entry, cached: true }))).toEqual(
      call.body.results.map((entry: object) => ({ ...entry, cached: true })),
    );
  });
});

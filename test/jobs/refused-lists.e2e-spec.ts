import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { JobWorker } from '../../src/jobs/work/job-worker.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { VideoPlatform } from '../../src/platform/video-platform.js';
import { SubscriptionRun } from '../subscriptions/subscription-run.js';
import { until } from '../harness/until.js';
import { SliceSteps } from './slice-steps.js';

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0, JOB_SWEEP_SECONDS: 1 } });
});
afterAll(async () => {
  await steps.service.close();
  jest.restoreAllMocks();
});

describe('while every egress is refused for lists', () => {
  it('the listed videos of a job whose next page is due go on, and the list is next when no video is due', async () => {
    const { service } = steps;
    const job = await steps.listed('@101-videos-no-64');
    const repository = service.app.get(SliceRepository);
    const slice = await repository.claim(null, false);
    if (!slice) throw new Error('The videos are not due.');
    expect(slice).toMatchObject({ kind: 'videos', job: { id: job.id, state: 'listing' } });
    await steps.run(slice);
    expect(await job.get()).toMatchObject({ state: 'listing', summary: { total: 100, succeeded: 25 } });

    // A last slice, after which all others are tried later.
    await service.query(`UPDATE job_videos SET retry_at = clock_now() + interval '1 hour' WHERE position > 50`);
    await steps.run((await repository.claim(null, false)) ?? slice);
    expect(await job.get()).toMatchObject({ state: 'listing', summary: { succeeded: 50, pending: 50 } });
    expect(await repository.claim(null, false)).toBeUndefined();
    expect(await repository.claim(null, true)).toMatchObject({ kind: 'listing' });
    await job.delete();
  });

  // Its worker runs until the end of the file.
  it('no check and no list is claimed or changed, videos go on, and afterwards all go on', async () => {
    const { service } = steps;
    const videos = await steps.listed('@3-videos-no-61');
    const subscription = await SubscriptionRun.create(steps, '@tidewater');
    const listing = await steps.job('@3-videos-no-62');
    service.fakeYoutube.setFaults({ kind: 'captcha', match: { kind: ['resolve', 'browse'] } });
    const { key } = await service.organization();
    expect((await service.get('/channels/@3-videos-no-63/uploads', key)).status).toBe(502);
    const platform = service.app.get(VideoPlatform);
    expect(platform.servesLists).toBe(false);

    const waiting = () =>
      service.query(`SELECT * FROM jobs WHERE id IN ('${subscription.id}', '${listing.id}') ORDER BY id`);
    // A slice that was claimed before the refusal is not sent, which is no set-back.
    const repository = service.app.get(SliceRepository);
    const slice = await repository.claim(listing.organization.id);
    if (!slice) throw new Error('The list is not due.');
    await steps.run(slice);
    expect(await listing.get()).toMatchObject({ state: 'listing', reason: null });
    expect(await waiting()).toMatchObject([{ setbacks: 0 }, { setbacks: 0 }]);
    await service.query(`UPDATE jobs SET next_run_at = created_at WHERE id = '${listing.id}'`);

    const unclaimed = await waiting();
    // The pause of the egress does not end before the videos are read.
    const refused = jest.spyOn(platform, 'servesLists', 'get').mockReturnValue(false);
    service.app.get(JobWorker).start(1, null);
    await until(async () => (await videos.get()).state === 'completed');
    expect(await videos.verify()).toMatchObject({ state: 'completed', summary: { succeeded: 3 } });
    expect(await waiting()).toEqual(unclaimed);

    service.fakeYoutube.reset();
    refused.mockRestore();
    // Past the pause of the egress.
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
    await until(async () => (await listing.get()).state === 'completed');
    await until(async () => (await subscription.row())['is_checked'] === true);
  }, 120_000);
});

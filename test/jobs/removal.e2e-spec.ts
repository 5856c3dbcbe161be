import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JobWorker } from '../../src/jobs/work/job-worker.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { until } from '../harness/until.js';
import { createJob, onJob, postJob } from './job-requests.js';
import { SliceSteps } from './slice-steps.js';

const VIDEOS_OF_A_JOB = 10_000;
const JOBS_MAX = 20;

const videos = Array.from({ length: VIDEOS_OF_A_JOB }, (_, index) => `v${String(index).padStart(10, '0')}`);

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0, JOB_SWEEP_SECONDS: 3_600 } });
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());

describe('jobs of 10,000 videos that are created and deleted', () => {
  it('count until they are removed, in turn with those of other organizations, without a pause', async () => {
    const { service } = steps;
    const [{ key }, other] = [await service.organization(), await service.organization()];
    for (let job = 0; job < JOBS_MAX; job++)
      expect((await onJob(service, key, 'DELETE', await createJob(service, key, { videos }))).status).toBe(204);
    const refused = await postJob(service, key, { videos: ['hl-dinghy__'] });
    expect([refused.status, refused.body.error]).toMatchObject([
      429,
      { code: 'too_many_jobs', message: expect.stringContaining('200000 videos of jobs') as unknown },
    ]);
    // A job whose list is not known yet, and another organization, are not affected.
    const waiting = await createJob(service, key, { channel: '@tidewater' });

    const small = await createJob(service, other.key, { videos: videos.slice(0, 300) });
    expect((await onJob(service, other.key, 'DELETE', small)).status).toBe(204);
    const isStored = async (id: string) => (await service.query(`SELECT FROM jobs WHERE id = '${id}'`)).length === 1;
    const repository = service.app.get(SliceRepository);
    let batches = 0;
    for (; await isStored(small); batches++) await repository.removeBatch();
    expect(batches).toBeLessThanOrEqual(5);

    // Its room comes back as its videos are removed.
    expect((await postJob(service, key, { videos: ['hl-dinghy__'] })).status).toBe(202);
    await service.query(`UPDATE jobs SET next_run_at = NULL`);
    service.app.get(JobWorker).start(1, null);
    await until(async () => (await service.query('SELECT FROM jobs WHERE deleted_at IS NOT NULL')).length === 0);
    expect(await isStored(waiting)).toBe(true);
  }, 120_000);

  it('are stored by the end of their results, and removed with them', async () => {
    const run = await steps.job({ videos: videos.slice(0, 3) });
    await run.cancel();
    const counted = () => steps.service.query(`SELECT last_position - removed AS videos FROM jobs`);
    expect(await counted()).toEqual([{ videos: 3 }]);
    await steps.pass(73 * 3_600);
    await steps.remove();
    expect(await counted()).toEqual([{ videos: 0 }]);
    await steps.pass(7 * 86_400);
    await steps.remove();
    expect(await counted()).toEqual([]);
  });
});

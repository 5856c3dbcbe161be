import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { JobWorker } from '../../src/jobs/work/job-worker.js';
import { REPORTED_BUDGETS } from '../fake-youtube/budgets.js';
import { until } from '../harness/until.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';

const DUE = 100;
const LISTS_A_MINUTE = { burst: 60, perMinute: 60, blockSeconds: 60 };

let steps: SliceSteps;
beforeAll(async () => {
  steps = await SliceSteps.start({
    environment: { JOB_SWEEP_SECONDS: 1 },
    fakeYoutube: { budgets: { ...REPORTED_BUDGETS, list: LISTS_A_MINUTE } },
  });
});
afterAll(() => steps.service.close());

it('a hundred checks that are due leave a process that has just started its lists for calls, and none is claimed that is not sent', async () => {
  const { service } = steps;
  const follower = await service.organization();
  for (let number = 0; number < DUE; number += 1)
    await SubscriptionRun.create(steps, `@3-videos-no-${number + 100}`, { organization: follower });
  const { key } = await service.organization();
  let calls = 0;
  const call = async () => (await service.get(`/channels/@3-videos-no-${++calls}/uploads`, key)).status;
  service.app.get(JobWorker).start(4, null);
  const finished = () => service.logs.filter((line) => line.includes('"source_finished"'));
  await until(() => finished().length >= 10);
  for (let times = 0; times < 2; times += 1) {
    const claims = finished().length;
    expect(await call()).toBe(200);
    await until(() => finished().length > claims);
  }
  expect(service.logs.filter((line) => line.includes('youtube_block_opened'))).toEqual([]);
  // The log of a slice that was just stored comes after it.
  await until(async () => {
    const checks = await service.query(`SELECT id FROM sources WHERE next_check_at > clock_now()`);
    return checks.length === finished().filter((line) => line.includes('"sourceId":"UC')).length;
  });
}, 120_000);

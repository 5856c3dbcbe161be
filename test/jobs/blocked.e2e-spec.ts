import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { hoursBefore } from '../fake-youtube/catalogue/model.js';
import { Registry } from 'prom-client';
import { JobMetrics } from '../../src/jobs/job-metrics.js';
import { SliceRepository } from '../../src/jobs/slice.repository.js';
import { valueOf } from '../quota/quota-database.js';
import { RETRY_DELAYS_SECONDS } from '../../src/jobs/slice.js';
import { JobRun } from './job-run.js';
import { SliceSteps } from './slice-steps.js';

let steps: SliceSteps;
/** A process on the same database that the platform blocks. */
let blocked: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0 } });
  blocked = await SliceSteps.start({ databaseUrl: () => Promise.resolve(steps.service.databaseUrl) });
  blocked.service.fakeYoutube.setFaults({ kind: 'bot-check' }, { kind: 'captcha', match: { kind: 'browse' } });
});
afterAll(async () => {
  await blocked.service.close();
  await steps.service.close();
});
beforeEach(() => steps.reset());

async function listed(channel: string): Promise<JobRun> {
  const run = await JobRun.create(steps.service, await steps.service.organization(), channel);
  await steps.steps(1);
  return run;
}

/** `ct_job_setbacks_max` now. */
async function setbacksMax(): Promise<number> {
  const { app } = steps.service;
  const registry = new Registry();
  new JobMetrics(registry, app.get(SliceRepository));
  return valueOf(registry, 'ct_job_setbacks_max');
}

describe('a job while the platform blocks the service', () => {
  it('pauses without a failed video, tries one video after growing pauses, and goes on when it is served', async () => {
    const run = await listed('@bench-30x22');
    await blocked.steps(1);
    expect(await run.verify()).toMatchObject({
      state: 'paused',
      reason: 'upstream_blocked',
      checkAgainSeconds: 30,
      summary: { failed: 0, pending: 30 },
    });
    for (const seconds of [30, 60]) {
      await steps.pass(seconds - 1);
      expect(await steps.step()).toBe(false);
      await steps.pass(1);
      await blocked.steps(1);
      expect(await run.get()).toMatchObject({ state: 'paused', checkAgainSeconds: seconds * 2 });
    }
    await steps.pass(120);
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ state: 'running', reason: null, summary: { fetched: 1 } });
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { succeeded: 30, fetched: 30 } });
    expect(
      await steps.service.query(`SELECT sum(retries) AS retries FROM job_videos WHERE job_id = '${run.id}'`),
    ).toEqual([{ retries: '0' }]);
  });

  it('stays paused when the process stops while it tries a video', async () => {
    const run = await listed('@bench-30x28');
    await blocked.steps(1);
    await steps.pass(30);
    await blocked.run(await blocked.claimed(), AbortSignal.abort());
    expect(await run.get()).toMatchObject({ state: 'paused', reason: 'upstream_blocked' });
    await blocked.steps(1);
    expect(await run.get()).toMatchObject({ state: 'paused', checkAgainSeconds: 60 });
    await steps.pass(60);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 30 } });
  });

  it('stays paused while all its videos wait for their next try', async () => {
    const run = await listed('@bench-2x30');
    await steps.service.query(`UPDATE jobs SET state = 'paused', reason = 'upstream_blocked' WHERE id = '${run.id}'`);
    await steps.service.query(`
      UPDATE job_videos SET retries = 1, retry_at = quota_now() + interval '10 minutes' WHERE job_id = '${run.id}'`);
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ state: 'paused', reason: 'upstream_blocked', checkAgainSeconds: 600 });
    await steps.pass(600);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 2 } });
  });

  it('pauses while the list is blocked, too', async () => {
    const run = await JobRun.create(steps.service, await steps.service.organization(), '@bench-5x23');
    await blocked.steps(1);
    expect(await run.get()).toMatchObject({ state: 'paused', reason: 'upstream_blocked', summary: { total: 0 } });
    await steps.pass(30);
    await steps.finish();
    expect((await run.verify()).state).toBe('completed');
  });
});

describe('a video that is refused while the service is not blocked', () => {
  it('is tried again, and fails at the end, so that the job ends', async () => {
    const run = await listed('@bench-3x27');
    const [video] = await steps.service.query(
      `SELECT video_id FROM job_videos WHERE job_id = '${run.id}' AND position = 3`,
    );
    steps.service.fakeYoutube.setFaults({ kind: 'bot-check', match: { videoId: String(video?.['video_id']) } });
    await steps.steps(1);
    expect(await run.verify()).toMatchObject({ state: 'running', summary: { fetched: 2, failed: 0, pending: 1 } });
    for (const seconds of RETRY_DELAYS_SECONDS) {
      expect(await steps.step()).toBe(false);
      await steps.pass(seconds);
      await steps.steps(1);
    }
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 2, failed: 1 } });
    expect((await run.entries())[2]?.entry).toMatchObject({ error: { code: 'upstream_blocked' } });
  });
});

describe('a list that cannot be read', () => {
  it('is read again after growing pauses, each failure is logged and counted, and the job shows in the metric of its alert', async () => {
    const run = await JobRun.create(steps.service, await steps.service.organization(), '@bench-5x32');
    steps.service.fakeYoutube.setFaults({ kind: '500', match: { kind: 'browse' } });
    const before = await steps.slices('error');
    for (const seconds of [30, 60, 120]) {
      await steps.steps(1);
      expect(await run.get()).toMatchObject({ state: 'listing', reason: null, checkAgainSeconds: seconds });
      await steps.pass(seconds);
    }
    expect(await steps.slices('error')).toBe(before + 3);
    // Both services of this process log to the one that was started last.
    const failed = blocked.service.logs.filter((line) => line.includes('"slice_failed"') && line.includes(run.id));
    expect(failed).toHaveLength(3);
    expect(failed[0]).toMatch(/"level":"warn".*"cause":"UpstreamError/);
    expect(await setbacksMax()).toBe(3);
    steps.service.fakeYoutube.reset();
    await steps.finish();
    expect((await run.verify()).state).toBe('completed');
  });
});

describe('a video that cannot be read', () => {
  it('is tried again after 10 minutes, 1 hour and 6 hours before it has failed', async () => {
    const run = await listed('@bench-3x24');
    const [video] = await steps.service.query(
      `SELECT video_id FROM job_videos WHERE job_id = '${run.id}' AND position = 2`,
    );
    steps.service.fakeYoutube.setFaults({ kind: '500', match: { videoId: String(video?.['video_id']) } });
    await steps.steps(1);
    expect(await run.verify()).toMatchObject({
      state: 'running',
      checkAgainSeconds: 600,
      summary: { fetched: 2, pending: 1 },
    });
    for (const [seconds, next] of [
      [600, 3_600],
      [3_600, 3_600],
    ] as const) {
      expect(await steps.step()).toBe(false);
      await steps.pass(seconds);
      await steps.steps(1);
      expect(await run.get()).toMatchObject({ state: 'running', checkAgainSeconds: next });
    }
    await steps.pass(21_600);
    await steps.steps(1);
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 2, failed: 1 } });
    const entries = await run.entries();
    expect(entries[1]?.entry).toMatchObject({ ok: false, error: { retryable: true } });
  });

  it('is fetched at a later try, and then readable; until then readers stop before it', async () => {
    const run = await listed('@bench-4x25');
    const [video] = await steps.service.query(
      `SELECT video_id FROM job_videos WHERE job_id = '${run.id}' AND position = 2`,
    );
    steps.service.fakeYoutube.setFaults({ kind: '500', match: { videoId: String(video?.['video_id']) } });
    await steps.steps(1);
    expect((await run.entries()).map(({ position }) => position)).toEqual([1]);
    steps.service.fakeYoutube.reset();
    await steps.pass(600);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 4 } });
    expect((await run.entries()).map(({ position }) => position)).toEqual([1, 2, 3, 4]);
  });

  it('without captions is read again while it is younger than a day', async () => {
    const run = await listed('@mixed-14x26');
    const [video] = await steps.service.query(
      `SELECT video_id FROM job_videos WHERE job_id = '${run.id}' AND position = 14`,
    );
    const reads = () =>
      steps.service.fakeYoutube.requests.count({ kind: 'player', videoId: String(video?.['video_id']) });
    const hoursOld = (hours: number): Date => new Date(hoursBefore(24 * 14).getTime() + hours * 3_600_000);
    const shiftSeconds = (hoursOld(1).getTime() - Date.now()) / 1000;
    await steps.pass(shiftSeconds);
    await steps.service.query('UPDATE jobs SET next_run_at = quota_now()');
    // The clock of the cache.
    const { now } = Date;
    let passedSeconds = shiftSeconds;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + passedSeconds * 1_000);
    try {
      await steps.steps(1);
      expect(await run.verify()).toMatchObject({
        state: 'running',
        checkAgainSeconds: 600,
        summary: { failed: 3, pending: 1 },
      });
      const before = reads();
      await steps.pass(600);
      passedSeconds += 600;
      await steps.steps(1);
      expect(reads()).toBeGreaterThan(before);
      expect(await run.get()).toMatchObject({ state: 'running', summary: { pending: 1 } });
    } finally {
      clock.mockRestore();
    }
    await steps.pass(24 * 3_600);
    await steps.steps(1);
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 10, failed: 4 } });
    expect((await run.entries()).at(-1)?.entry).toMatchObject({ error: { code: 'transcript_unavailable' } });
  });
});

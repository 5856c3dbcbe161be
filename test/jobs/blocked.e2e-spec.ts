import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { JobMetrics } from '../../src/jobs/job-metrics.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { valueOf } from '../quota/quota-database.js';
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

/** `ct_job_setbacks_max` now. */
async function setbacksMax(): Promise<number> {
  const { app } = steps.service;
  const registry = new Registry();
  new JobMetrics(registry, app.get(SliceRepository));
  return valueOf(registry, 'ct_job_setbacks_max');
}

describe('a job while the platform blocks the service', () => {
  it('pauses without a failed video, tries one video after growing pauses, and goes on when it is served', async () => {
    const run = await steps.listed('@30-videos-no-22');
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

  it('pauses while the list is blocked, too', async () => {
    const run = await steps.job('@5-videos-no-23');
    await blocked.steps(1);
    expect(await run.get()).toMatchObject({ state: 'paused', reason: 'upstream_blocked', summary: { total: 0 } });
    await steps.pass(30);
    await steps.finish();
    expect((await run.verify()).state).toBe('completed');
  });
});

describe('a job of which two videos are refused to every client', () => {
  it('uses up their tries and ends, and the address stays open for everybody', async () => {
    const run = await steps.listed('@12-videos-no-25');
    const ids = await run.videoIds();
    const refused = [ids[3] ?? '', ids[7] ?? ''];
    steps.service.fakeYoutube.setFaults(
      ...refused.map((videoId) => ({ kind: 'bot-check', match: { videoId } }) as const),
    );
    await steps.steps(1);
    for (const seconds of [600, 3_600, 21_600]) {
      expect(await run.get()).toMatchObject({ state: 'running', summary: { fetched: 10, pending: 2 } });
      await steps.pass(seconds);
      await steps.steps(1);
    }
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 10, failed: 2 } });
    const { key } = await steps.service.organization();
    const other = await steps.service.get('/channels/@tidewater/transcripts', key);
    expect(other.body).toMatchObject({ summary: { succeeded: 5, failed: 0 } });
  });
});

describe('a job at an address that is blocked with the words of a deleted video', () => {
  it('pauses, and no video of it has failed', async () => {
    const run = await steps.listed('@30-videos-no-26');
    blocked.service.fakeYoutube.setFaults(
      { kind: 'content-unavailable' },
      { kind: 'captcha', match: { kind: 'browse' } },
    );
    await blocked.steps(1);
    expect(await run.verify()).toMatchObject({
      state: 'paused',
      reason: 'upstream_blocked',
      summary: { failed: 0, pending: 30 },
    });
    await steps.pass(30);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { succeeded: 30 } });
  });
});

describe('a list that cannot be read', () => {
  it('is read again after growing pauses, each failure is logged and counted, and the job shows in the metric of its alert', async () => {
    const run = await steps.job('@5-videos-no-32');
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
    const run = await steps.listed('@3-videos-no-24');
    const [, videoId = ''] = await run.videoIds();
    steps.service.fakeYoutube.setFaults({ kind: '500', match: { videoId } });
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
    expect(entries.map(({ position }) => position)).toEqual([1, 3, 2]);
    expect(entries[2]?.entry).toMatchObject({ ok: false, error: { retryable: true } });
  });
});

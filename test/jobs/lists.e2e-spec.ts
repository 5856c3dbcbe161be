import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Registry } from 'prom-client';
import { FOG_SIGNAL } from '../fake-youtube/catalogue/other-channels.js';
import { SliceSteps } from './slice-steps.js';
import { JobMetrics } from '../../src/jobs/job-metrics.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { valueOf } from '../quota/quota-database.js';
import { JobWorker } from '../../src/jobs/work/job-worker.js';
import { VideoPlatform } from '../../src/platform/video-platform.js';
import { SubscriptionRun } from '../subscriptions/subscription-run.js';
import { until } from '../harness/until.js';

describe('a job whose list ends before the number of videos that it states', () => {
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0 } });
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());
  const ALL = FOG_SIGNAL.uploads().map(({ id }) => id);
  const PAUSED = { state: 'paused', reason: 'list_incomplete' };

  it('reads what was listed, then the list again, and completes with the whole list', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 200 });
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ state: 'listing', summary: { total: 100 } });
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ ...PAUSED, summary: { total: 200, pending: 200 }, checkAgainSeconds: 2 });
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ ...PAUSED, summary: { succeeded: 25 } });
    await steps.finish();
    expect(await run.verify()).toMatchObject({ ...PAUSED, finishedAt: null, summary: { succeeded: 200, pending: 0 } });
    steps.service.fakeYoutube.set({ listEndsAt: null });
    await steps.pass(600);
    await steps.finish();
    expect(await run.verify()).toMatchObject({
      state: 'completed',
      reason: null,
      summary: { total: 230, succeeded: 230 },
    });
    expect(await run.videoIds()).toEqual(ALL);
  });

  it('is read again ever more seldom, and completes when three reads over at least an hour end at the same video', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 199 });
    await steps.finish();
    for (const seconds of [600, 600, 3_600]) {
      const { state, reason, checkAgainSeconds, hidden } = await run.get();
      expect({ state, reason, hidden }).toEqual({ ...PAUSED, hidden: 31 });
      expect(checkAgainSeconds).toBeGreaterThan(Math.min(seconds, 3_600) - 60);
      await steps.pass(seconds - 60);
      expect(await steps.step()).toBe(false);
      await steps.pass(60);
      await steps.finish();
    }
    const summary = { total: 199, succeeded: 199, pending: 0 };
    expect(await run.verify()).toMatchObject({ state: 'completed', reason: null, hidden: 31, summary });
    expect(await steps.step()).toBe(false);
  });

  it('waits on while its list ends at another video each time, and counts anew from there', async () => {
    const run = await steps.job('@fogsignalradio');
    for (const [read, listEndsAt] of [100, 200, 100, 200, 200].entries()) {
      steps.service.fakeYoutube.set({ listEndsAt });
      await steps.pass(read === 0 ? 0 : 21_600);
      await steps.finish();
      expect(await run.get()).toMatchObject(PAUSED);
    }
    await steps.pass(21_600);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', hidden: 30, summary: { total: 200 } });
  });

  it('waits an hour however often it is resumed', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 100 });
    await steps.finish();
    for (let resumed = 0; resumed < 4; resumed++) {
      await run.resume();
      await steps.finish();
    }
    expect(await run.get()).toMatchObject(PAUSED);
    await steps.pass(3_600);
    await run.resume();
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', hidden: 130 });
  });

  it('waits on while its last page cannot be read', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.setFaults({ kind: 'incomplete', match: { kind: 'browse-continuation' } });
    await steps.finish();
    for (let read = 0; read < 4; read++) {
      await steps.pass(21_600);
      await steps.finish();
    }
    expect(await run.get()).toMatchObject({ ...PAUSED, hidden: 0, summary: { total: 100 } });
  });

  it('reads the list at once when it is resumed', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 100 });
    await steps.finish();
    expect(await run.get()).toMatchObject(PAUSED);
    steps.service.fakeYoutube.set({ listEndsAt: null });
    expect(await run.resume()).toMatchObject({ state: 'listing', reason: null });
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total: 230 } });
  });

  it.each([
    ['has its limit', { limit: 100 }, 100],
    ['has found the video that ends it', { since: ALL[40] ?? null }, 40],
  ])('completes when it %s', async (_, request, total) => {
    const run = await steps.job('@fogsignalradio', request);
    steps.service.fakeYoutube.set({ listEndsAt: 100 });
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total } });
  });

  it.each(['incomplete', 'unknown-error'] as const)(
    '(%s) is paused when a page stays incomplete, the first one too',
    async (kind) => {
      const [first, later] = [await steps.job('@tidewater'), await steps.job('@fogsignalradio')];
      steps.service.fakeYoutube.setFaults(
        { kind, match: { kind: 'browse-continuation' } },
        { kind, match: { kind: 'browse-uploads', channelId: 'UCtidewater_____________' } },
      );
      await steps.finish();
      expect(await first.get()).toMatchObject({ ...PAUSED, summary: { total: 0 } });
      expect(await later.verify()).toMatchObject({ ...PAUSED, summary: { total: 100, succeeded: 100 } });
      steps.service.fakeYoutube.setFaults();
      await steps.pass(600);
      await steps.finish();
      expect([(await first.verify()).state, (await later.verify()).state]).toEqual(['completed', 'completed']);
    },
  );

  it('pauses longer after each failure to read the list again', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 200 });
    await steps.finish();
    steps.service.fakeYoutube.setFaults({ kind: '500', match: { kind: 'browse' } });
    await steps.pass(600);
    for (const seconds of [30, 60, 120]) {
      await steps.steps(1);
      await steps.pass(seconds / 2);
      expect(await steps.step()).toBe(false);
      await steps.pass(seconds / 2);
    }
    steps.service.fakeYoutube.reset();
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total: 230 } });
  });

  it.each([2, 100])('misses nothing when the %d videos that were listed are in the list no more', async (count) => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: count });
    await steps.finish();
    expect(await run.get()).toMatchObject({ ...PAUSED, summary: { total: count } });
    steps.service.fakeYoutube.changeVideos({ videoIds: ALL.slice(0, count), as: 'private' });
    steps.service.fakeYoutube.set({ listEndsAt: null });
    await run.resume();
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total: 230 } });
    expect(await run.videoIds()).toEqual(ALL);
  });

  it.each([
    { listed: 100, published: 130, limit: null },
    { listed: 2, published: 130, limit: 40 },
  ])('leaves out what was published since it was listed: %j', async ({ listed, published, limit }) => {
    const run = await steps.job('@fogsignalradio', { limit });
    steps.service.fakeYoutube.set({ listEndsAt: listed });
    await steps.finish();
    expect(await run.get()).toMatchObject(PAUSED);
    steps.service.fakeYoutube.publish({ channel: '@fogsignalradio', count: published });
    steps.service.fakeYoutube.set({ listEndsAt: null });
    await run.resume();
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed' });
    expect(await run.videoIds()).toEqual(ALL.slice(0, limit ?? ALL.length));
  });

  it('is canceled by its next slice, at once, when its organization is deleted', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 100 });
    await steps.finish();
    expect(await run.get()).toMatchObject(PAUSED);
    expect(await steps.step()).toBe(false);
    await steps.service.query(
      'UPDATE organizations SET deleted_at = clock_now() WHERE id = (SELECT organization_id FROM jobs)',
    );
    await steps.steps(1);
    expect(await steps.service.query('SELECT state FROM jobs')).toEqual([{ state: 'canceled' }]);
  });

  it('can be canceled and resumed', async () => {
    const run = await steps.job('@fogsignalradio');
    steps.service.fakeYoutube.set({ listEndsAt: 100 });
    await steps.steps(2);
    expect(await run.cancel()).toMatchObject({ state: 'canceled' });
    steps.service.fakeYoutube.set({ listEndsAt: null });
    await run.resume();
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total: 230 } });
  });
});

describe('a blocked platform', () => {
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
});

describe('while every egress is refused for lists', () => {
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0, JOB_SWEEP_SECONDS: 1 } });
  });

  afterAll(async () => {
    await steps.service.close();
    jest.restoreAllMocks();
  });

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

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { FOG_SIGNAL } from '../fake-youtube/catalogue/other-channels.js';
import { SliceSteps } from './slice-steps.js';

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0 } });
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());

const ALL = FOG_SIGNAL.uploads().map(({ id }) => id);
const PAUSED = { state: 'paused', reason: 'list_incomplete' };

describe('a job whose list ends before the number of videos that it states', () => {
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

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { SliceSteps } from './slice-steps.js';

const DAY = 86_400;

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start();
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());

const oldestDueSeconds = async (): Promise<number> => {
  const [row] = await steps.service.app.get(SliceRepository).waiting();
  return Math.round(row?.oldest_due_seconds ?? 0);
};

describe.each([1, 10])('after the clock of the database was %s days ahead for a moment', (days) => {
  it('the jobs that worked then go on at once, and what is due is counted', async () => {
    // The next slice of one has a pause, as have the videos of the other, and a process with a slice of the third was killed.
    const [paused, retried, killed] = [
      await steps.job(`@3-videos-no-71${days}`),
      await steps.listed(`@3-videos-no-72${days}`),
      await steps.listed(`@3-videos-no-73${days}`),
    ];
    await steps.pass(days * DAY);
    steps.service.fakeYoutube.setFaults({ kind: '500' });
    const claimed = [await steps.claimed(), await steps.claimed(), await steps.claimed()];
    for (const slice of claimed) if (slice.job.id !== killed.id) await steps.run(slice);
    expect(await steps.claim()).toBeUndefined();

    steps.service.fakeYoutube.reset();
    await steps.pass(-days * DAY);
    const first = await steps.claimed();
    await steps.pass(600);
    await steps.run(first);
    const overdueSeconds = await oldestDueSeconds();
    expect([overdueSeconds >= 600, overdueSeconds < DAY]).toEqual([true, true]);
    await steps.finish();
    for (const run of [paused, retried, killed]) expect(await run.get()).toMatchObject({ state: 'completed' });
    expect(await oldestDueSeconds()).toBe(0);
  });

  it('a job that was deleted then is removed at once, and the turns of other organizations come', async () => {
    const [deleted, other] = [await steps.job({ videos: ['hl-dinghy__'] }), await steps.job(`@3-videos-no-74${days}`)];
    await steps.pass(days * DAY);
    await deleted.delete();
    await steps.pass(-days * DAY);
    await steps.remove();
    expect(await steps.service.query(`SELECT id FROM jobs`)).toEqual([{ id: other.id }]);
    await steps.finish();
    expect(await other.get()).toMatchObject({ state: 'completed' });
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';

const DAY_MS = 86_400_000;

let steps: SliceSteps;
beforeAll(async () => {
  steps = await SliceSteps.start();
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());

const youtube = () => steps.service.fakeYoutube;
const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY_MS);

async function followed(...[channel, options]: [string, Parameters<typeof SubscriptionRun.create>[2]?]) {
  const run = await SubscriptionRun.create(steps, channel, options);
  await steps.finish();
  return run;
}

async function check(run: SubscriptionRun): Promise<void> {
  await run.dueNow();
  await steps.finish();
}

const sorted = (ids: readonly string[]): string[] => [...ids].sort();

describe('a channel that was seen completely', () => {
  beforeEach(() => {
    youtube().publish({ channel: '@emptyslip', publishedAt: daysAgo(10) });
  });

  it('has something new where an old private video at its end becomes public', async () => {
    const hidden = youtube().publish({ channel: '@emptyslip', as: 'private', below: 1, publishedAt: daysAgo(60) });
    const run = await followed('@emptyslip');
    youtube().changeVideos({ videoIds: hidden, as: 'video' });
    const others = youtube().publish({ channel: '@emptyslip' });
    await check(run);
    expect(sorted(await run.feedIds())).toEqual(sorted([...hidden, ...others]));
  });

  it('has something new where an old private video becomes public above a newer one', async () => {
    const hidden = youtube().publish({ channel: '@emptyslip', as: 'private', publishedAt: daysAgo(60) });
    const run = await followed('@emptyslip');
    youtube().changeVideos({ videoIds: hidden, as: 'video' });
    await check(run);
    expect(await run.feedIds()).toEqual(hidden);
  });

  it('has something new where a premiere is announced at its end, with a date before the subscription', async () => {
    const run = await followed('@emptyslip');
    const announced = { as: 'premiere', below: 1, publishedAt: daysAgo(60) } as const;
    const premiere = youtube().publish({ channel: '@emptyslip', ...announced });
    await check(run);
    youtube().changeVideos({ videoIds: premiere, as: 'video' });
    await check(run);
    expect(await run.feedIds()).toEqual(premiere);
  });
});

describe('a channel that listed nothing when it was followed', () => {
  it('has something new when uploads of the hours before are listed, but not when old ones are', async () => {
    const run = await followed('@emptyslip');
    youtube().publish({ channel: '@emptyslip', publishedAt: daysAgo(3) });
    const late = youtube().publish({ channel: '@emptyslip', count: 2, publishedAt: daysAgo(0.2) });
    await check(run);
    expect(sorted(await run.feedIds())).toEqual(sorted(late));
  });
});

describe('uploads that are listed above seen ones, with dates before the subscription', () => {
  it.each(['@25-videos-no-504', '@archive-300x95'])('are delivered, also when they fill pages: %s', async (channel) => {
    const run = await followed(channel);
    for (const [count, days] of [
      [3, 3],
      [120, 2],
      [210, 400],
    ] as const) {
      const delivered = await run.feedIds();
      const published = youtube().publish({ channel, count, publishedAt: daysAgo(days) });
      await check(run);
      if (count > 20) {
        // So many can be those of a list that is odd once.
        expect(sorted(await run.feedIds())).toEqual(sorted(delivered));
        await check(run);
      }
      expect(sorted(await run.feedIds())).toEqual(sorted([...delivered, ...published]));
      expect(await run.charged()).toBe(delivered.length + count);
    }
    expect(await run.row()).toMatchObject({ total: 333, pending: 0, is_checked: true });
    expect(await undecided(run)).toBe(0);
  });

  it('are delivered where seen ones are listed above them too, in one check or another', async () => {
    const run = await followed('@archive-300x95');
    const first = youtube().publish({ channel: '@archive-300x95', count: 3 });
    await check(run);
    const others = { channel: '@archive-300x95', count: 230, below: 3, publishedAt: daysAgo(60) };
    const published = youtube().publish(others);
    await run.dueNow();
    await steps.steps(2);
    expect(await undecided(run)).toBe(197);
    for (let checks = 0; checks < 2; checks++) {
      await steps.pass(1);
      await check(run);
    }
    expect(sorted(await run.feedIds())).toEqual(sorted([...first, ...published]));
    expect(await undecided(run)).toBe(0);
  });

  it('are delivered when the check that reads them is begun again', async () => {
    const run = await followed('@archive-300x95');
    const published = youtube().publish({ channel: '@archive-300x95', count: 120, publishedAt: daysAgo(60) });
    await run.dueNow();
    await steps.steps(1);
    expect(await run.row()).toMatchObject({ total: 0, is_checked: false });
    expect(await undecided(run)).toBe(100);
    for (let checks = 0; checks < 2; checks++) {
      await steps.pass(1);
      await check(run);
    }
    expect(sorted(await run.feedIds())).toEqual(sorted(published));
  });

  it('are left out when their kind is not wanted', async () => {
    const run = await followed('@archive-300x95', { kinds: ['short'] });
    youtube().publish({ channel: '@archive-300x95', count: 120, publishedAt: daysAgo(60) });
    await check(run);
    expect(await run.row()).toMatchObject({ total: 0, is_checked: true });
  });
});

it('uploads that take the places of a page of seen ones, which were deleted, are not delivered', async () => {
  const run = await followed('@archive-1500x95');
  const seen = await steps.service.query('SELECT video_id FROM source_uploads');
  youtube().changeVideos({ videoIds: seen.map(({ video_id }) => String(video_id)), deleted: true });
  const before = youtube().requests.total;
  await check(run);
  expect(await run.row()).toMatchObject({ total: 0, is_checked: true, seen_position: 1_100 });
  expect(await undecided(run)).toBe(0);
  await steps.pass(1);
  const published = youtube().publish({ channel: '@archive-1500x95' });
  await check(run);
  expect(await run.feedIds()).toEqual(published);
  // Ten pages twice, since uploads may have moved between them, and what is new.
  expect(youtube().requests.total - before).toBeLessThan(40);
});

async function undecided(run: SubscriptionRun): Promise<unknown> {
  const [row] = await steps.service.query(`SELECT count(*)::int AS count FROM source_uploads
    WHERE source_id = '${String((await run.row())['source_id'])}' AND state = 'undecided'`);
  return row?.['count'];
}

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { PublishedState } from '../fake-youtube/publish/published-video.js';
import { SliceSteps } from './slice-steps.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;

let steps: SliceSteps;
beforeAll(async () => {
  steps = await SliceSteps.start();
});
afterAll(() => steps.service.close());
beforeEach(() => {
  passedMs = 0;
  jest.spyOn(Date, 'now').mockImplementation(() => wallClock() + passedMs);
  return steps.reset();
});
afterEach(() => void jest.restoreAllMocks());

const youtube = () => steps.service.fakeYoutube;

const wallClock = Date.now.bind(Date);
let passedMs = 0;

/** Lets time pass for the database and for the process, which shares for seconds what it has found. */
async function pass(seconds: number): Promise<void> {
  passedMs += seconds * 1_000;
  await steps.pass(seconds);
}

const daysAgo = (days: number): Date => new Date(wallClock() - days * DAY * 1_000);

/** A job of the newest video of a channel, which changes after it was listed. */
async function jobOf(state: PublishedState, publishedAt: Date, languages: string[] = []) {
  const [video = ''] = youtube().publish({ channel: '@tidewater', publishedAt });
  const run = await steps.job('@tidewater', { limit: 1, languages });
  await steps.steps(1);
  youtube().changeVideos({ videoIds: [video], as: state });
  await steps.finish();
  return { run, video };
}

describe('a fact of a moment about a young video of a job', () => {
  it.each<[PublishedState, PublishedState, age: number, languages: string[]]>([
    ['private', 'video', 2, []],
    ['unavailable', 'video', 2, []],
    ['uncaptioned', 'video', 2, []],
    ['video', 'translated', 2, ['fr']],
    ['members-only', 'video', 2, []],
    ['members-only', 'video', 29, []],
  ])('is not final: it is %s first and %s within hours, at %i days (%j)', async (first, later, age, languages) => {
    const { run, video } = await jobOf(first, daysAgo(age), languages);
    expect(await run.get()).toMatchObject({ state: 'running', summary: { total: 1, pending: 1 } });
    for (const seconds of [600, HOUR]) {
      await pass(seconds);
      await steps.finish();
    }
    expect(await run.get()).toMatchObject({ state: 'running', summary: { pending: 1 } });
    youtube().changeVideos({ videoIds: [video], as: later });
    await pass(6 * HOUR);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { succeeded: 1, fetched: 1 } });
  });

  it('is final after its last retry', async () => {
    const { run } = await jobOf('private', daysAgo(2));
    for (const seconds of [600, HOUR, 6 * HOUR]) {
      expect((await run.get()).state).toBe('running');
      await pass(seconds);
      await steps.finish();
    }
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { failed: 1 } });
    expect((await run.entries())[0]?.entry.error?.code).toBe('video_private');
  });

  it.each<[PublishedState, age: number]>([
    ['private', 3],
    ['uncaptioned', 3],
    ['members-only', 30],
  ])('is final at once when it is %s and %i days old', async (state, age) => {
    const { run } = await jobOf(state, daysAgo(age));
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { failed: 1, pending: 0 } });
  });
});

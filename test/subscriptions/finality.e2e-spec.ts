import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { PublishedState } from '../fake-youtube/publish/published-video.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';

const MINUTE = 60;
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

async function followed(options: Parameters<typeof SubscriptionRun.create>[2] = {}): Promise<SubscriptionRun> {
  const run = await (await SubscriptionRun.create(steps, '@tidewater', options)).withWebhook();
  await steps.finish();
  return run;
}

/** Publishes a video that is listed by a check, and changes before it is read. */
async function publishedAs(run: SubscriptionRun, state: PublishedState, publishedAt?: Date): Promise<string> {
  const [video = ''] = youtube().publish({ channel: '@tidewater', publishedAt });
  await run.dueNow();
  await steps.steps(1);
  youtube().changeVideos({ videoIds: [video], as: state });
  await steps.finish();
  return video;
}

const change = (video: string, as: PublishedState): void => youtube().changeVideos({ videoIds: [video], as });

const playerRequests = (videoId: string): number => youtube().requests.count({ kind: 'player', videoId });

/** An upload was delivered in the end: once, with one event, and charged once, however often it is checked later. */
async function expectDeliveredOnce(run: SubscriptionRun, videoId: string, delivered: object = {}): Promise<void> {
  const isOf = (entry: { videoId?: unknown }): boolean => entry.videoId === videoId;
  expect((await run.feed()).filter(isOf)).toMatchObject([{ ok: true, cached: false, ...delivered }]);
  await run.dueNow();
  await pass(2 * DAY);
  await steps.finish();
  expect((await run.feed()).filter(isOf)).toHaveLength(1);
  expect(await run.pendingIds()).toEqual([]);
  expect((await run.events()).filter(({ data }) => isOf(data)).map(({ type }) => type)).toEqual(['upload.ready']);
  expect(await run.charged()).toBe(new Set(await run.feedIds()).size);
}

describe('a fact of a moment:', () => {
  it.each<[what: string, PublishedState]>([
    ['private', 'private'],
    ['unavailable', 'unavailable'],
    ['without captions', 'uncaptioned'],
  ])('an upload that is %s in its first minutes is delivered once when it opens', async (_what, state) => {
    const run = await followed();
    const video = await publishedAs(run, state);
    expect([await run.feed(), await run.pendingIds()]).toEqual([[], [video]]);
    change(video, 'video');
    await pass(10 * MINUTE);
    await steps.finish();
    await expectDeliveredOnce(run, video);
  });

  it('French captions that come a day after the English ones are delivered once', async () => {
    const run = await followed({ languages: ['fr'] });
    const [video = ''] = youtube().publish({ channel: '@tidewater' });
    await run.dueNow();
    await steps.finish();
    expect([await run.feed(), await run.pendingIds()]).toEqual([[], [video]]);
    for (let hours = 0; hours < 24; hours += 1) {
      await pass(HOUR);
      await steps.finish();
    }
    change(video, 'translated');
    await pass(DAY);
    await steps.finish();
    await expectDeliveredOnce(run, video, { transcript: { fr: expect.anything() } });
  });

  it.each<[how: string, isListedAsSuch: boolean]>([
    ['by the badge of the list', true],
    ['by its player', false],
  ])('an upload that is for members first, %s, is delivered once when it opens', async (_how, isListedAsSuch) => {
    const run = await followed();
    const video = isListedAsSuch
      ? (youtube().publish({ channel: '@tidewater', as: 'members-only' })[0] ?? '')
      : await publishedAs(run, 'members-only');
    await run.dueNow();
    await steps.finish();
    expect([await run.feed(), await run.pendingIds()]).toEqual([[], [video]]);
    for (let days = 0; days < 8; days += 1) {
      await pass(DAY);
      await steps.finish();
    }
    expect(await run.pendingIds()).toEqual([video]);
    // The list does not show it any more.
    youtube().publish({ channel: '@tidewater', count: 120, publishedAt: new Date(wallClock() - 400 * DAY * 1_000) });
    change(video, 'video');
    await pass(7 * DAY);
    await steps.finish();
    await expectDeliveredOnce(run, video);
  });

  it('is read anew from the player, and not taken from the list that was read before', async () => {
    const run = await followed();
    const [video = ''] = youtube().publish({ channel: '@tidewater', as: 'members-only' });
    await run.dueNow();
    await steps.finish();
    expect([playerRequests(video), await run.pendingIds()]).toEqual([0, [video]]);
    await pass(DAY);
    await steps.finish();
    expect(playerRequests(video)).toBe(1);
    await pass(11);
    await run.dueNow();
    await steps.finish();
    expect(playerRequests(video)).toBe(2);
  });

  /** The hours until an upload is final, in steps of six. */
  async function hoursUntilFinal(run: SubscriptionRun): Promise<number> {
    for (let hours = 0; ; hours += 6) {
      if ((await run.pendingIds()).length === 0 || hours > 40 * 24) return hours;
      await pass(6 * HOUR);
      await steps.finish();
    }
  }

  it.each<[PublishedState, code: string]>([
    ['private', 'video_private'],
    ['unavailable', 'video_unavailable'],
    ['uncaptioned', 'transcript_unavailable'],
  ])('an upload that stays %s is final as %s when it is three days old', async (state, code) => {
    const run = await followed();
    const video = await publishedAs(run, state);
    expect(await hoursUntilFinal(run)).toBe(3 * 24);
    expect(await run.feed()).toMatchObject([{ videoId: video, error: { code } }]);
    expect(await run.events()).toMatchObject([{ type: 'upload.failed', data: { videoId: video, code } }]);
  });

  it('an upload that stays for members is final on its 30th day, after eleven tries', async () => {
    const run = await followed();
    const [video = ''] = youtube().publish({ channel: '@tidewater', as: 'members-only' });
    await run.dueNow();
    await steps.finish();
    expect(await hoursUntilFinal(run)).toBe(30 * 24);
    expect(await run.feed()).toMatchObject([{ videoId: video, error: { code: 'video_members_only' } }]);
    expect(playerRequests(video)).toBe(11);
  });

  it('an upload of three days, by the clock of the database, is final at once', async () => {
    await steps.pass(2 * DAY);
    const run = await followed();
    const video = await publishedAs(run, 'private', new Date(wallClock() - DAY * 1_000));
    expect(await run.feed()).toMatchObject([{ videoId: video, error: { code: 'video_private' } }]);
  });

  it('a stream that was announced weeks ahead is not given up for a failure, nor while it has no captions yet', async () => {
    const run = await followed();
    const [video = ''] = youtube().publish({ channel: '@tidewater', as: 'premiere' });
    for (let days = 0; days < 15; days += 1) {
      await run.dueNow();
      await pass(DAY);
      await steps.finish();
    }
    youtube().setFaults({ kind: '500', match: { videoId: video } });
    await pass(DAY);
    await steps.finish();
    youtube().setFaults();
    expect(await run.pendingIds()).toEqual([video]);
    // It runs and ends between two checks; its date is that of its announcement.
    await steps.service.query(`UPDATE sources SET next_check_at = clock_now() + interval '1 year'`);
    change(video, 'uncaptioned');
    await pass(DAY);
    await steps.finish();
    expect(await run.pendingIds()).toEqual([video]);
    change(video, 'past-live');
    await pass(DAY);
    await steps.finish();
    expect(await run.feed()).toMatchObject([{ videoId: video, ok: true }]);
  });
});

it('the entry and the event of an upload have the title of the video itself, which lists translate', async () => {
  const run = await followed();
  const [video = ''] = youtube().publish({ channel: '@tidewater', title: 'Le brouillard' });
  await run.dueNow();
  await steps.steps(1);
  await steps.service.query(`UPDATE job_videos SET upload = replace(upload, 'Le brouillard', 'The fog')
    WHERE video_id = '${video}'`);
  await steps.finish();
  const title = expect.stringMatching(/^Le brouillard/);
  expect(await run.feed()).toMatchObject([{ videoId: video, metadata: { title } }]);
  expect(await run.events()).toMatchObject([{ data: { videoId: video, title } }]);
});

import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { FOG_SIGNAL } from '../fake-youtube/catalogue/other-channels.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { drawnTransitions, loggedTransitions } from '../jobs/transitions.js';
import { SubscriptionRun } from './subscription-run.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;

let steps: SliceSteps;
beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0 } });
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());
afterEach(() => void jest.restoreAllMocks());

const youtube = () => steps.service.fakeYoutube;

const wallClock = Date.now.bind(Date);
/** Moves the clock of the process ahead of the true one. */
function passInProcess(seconds: number): void {
  jest.spyOn(Date, 'now').mockImplementation(() => wallClock() + seconds * 1_000);
}

/** A subscription that was created yesterday, and whose baseline is read. */
async function followed(channel: string, options: Parameters<typeof SubscriptionRun.create>[2] = {}) {
  const run = await (await SubscriptionRun.create(steps, channel, options)).withWebhook();
  await steps.finish();
  await steps.service.query(`UPDATE jobs SET created_at = created_at - interval '1 day' WHERE id = '${run.id}';
    UPDATE sources SET created_at = created_at - interval '1 day'`);
  return run;
}

/** Checks the channel now, and reads what is new. */
async function check(...runs: SubscriptionRun[]): Promise<void> {
  for (const run of runs) await run.dueNow();
  await steps.finish();
}

describe('a subscription', () => {
  it('delivers what is uploaded after its start, each upload once, as an entry and as an event', async () => {
    const run = await followed('@tidewater');
    expect(await run.row()).toMatchObject({ state: 'running', total: 0, is_checked: true });
    const [first] = youtube().publish({ channel: '@tidewater' });
    await check(run);
    await check(run);
    expect(await run.feedIds()).toEqual([first]);
    const [last] = youtube().publish({ channel: '@tidewater', title: 'Eel \u0000' });
    await check(run);
    expect(await run.feedIds()).toEqual([first, last]);
    expect(await run.charged()).toBe(2);
    expect(await run.events()).toMatchObject([
      {
        type: 'upload.ready',
        data: {
          subscriptionId: run.id,
          videoId: first,
          code: null,
          results: `/subscriptions/${run.id}/results?after=0&limit=1`,
        },
      },
      {
        type: 'upload.ready',
        data: { videoId: last, results: expect.stringMatching(/\/results\?after=1\.[\w-]{8}&limit=1$/) },
      },
    ]);
    expect(await run.row()).toMatchObject({ total: 2, succeeded: 2, fetched: 2, failed: 0 });
  });

  it('begins with the newest uploads, or with those above a video', async () => {
    const [newest, second, third] = youtube().publish({ channel: '@tidewater', count: 3 });
    const [two, above] = [
      await followed('@tidewater', { start: 2 }),
      await followed('@tidewater', { start: third ?? '' }),
    ];
    expect(await two.feedIds()).toEqual([newest, second]);
    expect(await above.feedIds()).toEqual([newest, second]);
  });

  it('leaves out kinds that are not wanted', async () => {
    const run = await followed('@tidewater', { kinds: ['video'] });
    youtube().publish({ channel: '@tidewater', as: 'short' });
    const [video] = youtube().publish({ channel: '@tidewater' });
    await check(run);
    expect(await run.feedIds()).toEqual([video]);
  });

  it('leaves out beyond the first page what cannot be of the kinds by its length', async () => {
    const channel = '@fogsignalradio';
    const shorts = youtube().publish({ channel, as: 'short', count: 3, below: 150 });
    const start = FOG_SIGNAL.uploads()[180]?.id ?? '';
    const run = await followed(channel, { kinds: ['short'], start });
    const brief = FOG_SIGNAL.uploads()
      .slice(100, 180)
      .filter(({ durationSeconds }) => durationSeconds <= 181);
    expect(brief.length).toBeLessThan(10);
    const wanted = [...shorts, ...brief.map(({ id }) => id)];
    expect([...(await run.feedIds())].sort()).toEqual(wanted.sort());
    expect(await run.charged()).toBe(wanted.length);
  });

  it('misses none of 250 uploads between two checks', async () => {
    const run = await followed('@tidewater');
    const published = youtube().publish({ channel: '@tidewater', count: 250 });
    await check(run);
    expect([...(await run.feedIds())].sort()).toEqual([...published].sort());
    expect(await run.row()).toMatchObject({ total: 250, succeeded: 250, fetched: 250 });
    expect(await run.charged()).toBe(250);
  });

  it('misses no upload below a stream that was seen and moves to when it ran', async () => {
    const run = await followed('@tidewater');
    const stream = youtube().publish({ channel: '@tidewater', as: 'premiere' });
    await check(run);
    await steps.pass(DAY);
    const below = youtube().publish({ channel: '@tidewater', count: 90 });
    youtube().changeVideos({ videoIds: stream, as: 'video' });
    const above = youtube().publish({ channel: '@tidewater', count: 20 });
    youtube().changeChannel({ channel: '@tidewater', order: [...above, ...stream, ...below] });
    await check(run);
    expect([...(await run.feedIds())].sort()).toEqual([...stream, ...below, ...above].sort());
  });

  it('misses none when uploads above them are deleted between two pages of a check', async () => {
    const run = await followed('@tidewater');
    const [first = '', second = '', ...others] = youtube().publish({ channel: '@tidewater', count: 150 });
    await run.dueNow();
    await steps.steps(1);
    youtube().changeVideos({ videoIds: [first, second], deleted: true });
    await steps.steps(1);
    const later = youtube().publish({ channel: '@tidewater', count: 10 });
    await check(run);
    expect(await run.feedIds()).toEqual(expect.arrayContaining([...others, ...later]));
    // What was deleted in its first days may come back.
    expect(await run.pendingIds()).toEqual([first, second]);
    expect(await run.row()).toMatchObject({ total: 160, pending: 2 });
  });

  it('waits for the text of a premiere, of a live stream and of a video without captions', async () => {
    const run = await followed('@tidewater');
    const premiere = youtube().publish({ channel: '@tidewater', as: 'premiere' });
    const live = youtube().publish({ channel: '@tidewater', as: 'live' });
    const uncaptioned = youtube().publish({ channel: '@tidewater', as: 'uncaptioned' });
    await check(run);
    expect(await run.feed()).toEqual([]);
    expect(await run.row()).toMatchObject({ total: 3, pending: 3 });

    youtube().changeVideos({ videoIds: premiere, as: 'video' });
    youtube().changeVideos({ videoIds: live, as: 'just-ended' });
    await steps.pass(2 * HOUR);
    await check(run);
    expect(await run.feedIds()).toEqual(premiere);
    youtube().changeVideos({ videoIds: live, as: 'past-live' });
    youtube().changeVideos({ videoIds: uncaptioned, as: 'video' });
    for (let day = 0; day < 2; day++) {
      await steps.pass(DAY);
      await steps.finish();
    }
    expect((await run.feedIds()).slice(0, 2)).toEqual([...premiere, ...live]);
  });

  it('waits for an upload that is still processed, and delivers it once', async () => {
    const run = await followed('@tidewater');
    const upload = youtube().publish({ channel: '@tidewater', as: 'processing' });
    await check(run);
    expect([await run.feed(), await run.row()]).toMatchObject([[], { total: 1, pending: 1 }]);
    youtube().changeVideos({ videoIds: upload, as: 'video' });
    for (let days = 0; days < 2; days += 1) {
      await steps.pass(DAY);
      await check(run);
    }
    expect(await run.feed()).toMatchObject([{ videoId: upload[0], ok: true }]);
  });

  it('asks for captions again that were missing, when a check is requested and by itself', async () => {
    const run = await followed('@tidewater');
    const tries = async (video = '') => {
      await steps.finish();
      return youtube().requests.count({ kind: 'player', videoId: video });
    };
    const [video = ''] = youtube().publish({ channel: '@tidewater', as: 'uncaptioned' });
    await run.dueNow();
    const atFirst = await tries(video);
    // A request that follows at once shares what was found.
    await run.dueNow();
    expect(await tries(video)).toBe(atFirst);
    passInProcess(11);
    await run.dueNow();
    const requested = await tries(video);
    expect(requested).toBeGreaterThan(atFirst);
    youtube().changeVideos({ videoIds: [video], as: 'video' });
    passInProcess(22);
    await steps.pass(HOUR);
    await steps.finish();
    expect(await run.feedIds()).toEqual([video]);
  });

  it('delivers a private video that becomes public, and none twice when the list changes', async () => {
    const run = await followed('@tidewater');
    const [hidden = ''] = youtube().publish({ channel: '@tidewater', as: 'private' });
    const [newest = '', second = '', third = ''] = youtube().publish({ channel: '@tidewater', count: 3 });
    await check(run);
    youtube().changeVideos({ videoIds: [hidden], as: 'video' });
    youtube().changeVideos({ videoIds: [second], deleted: true });
    youtube().changeChannel({ channel: '@tidewater', order: [third, newest] });
    await check(run);
    expect(await run.feedIds()).toEqual([newest, second, third, hidden]);
  });

  it('goes on when the channel is renamed', async () => {
    const run = await followed('@tidewater');
    youtube().changeChannel({ channel: '@tidewater', name: 'Ebb', handle: '@ebb' });
    const published = youtube().publish({ channel: '@ebb' });
    await check(run);
    expect(await run.feedIds()).toEqual(published);
  });
});

describe('a check', () => {
  it('costs one request when nothing is new, for all subscriptions to the channel', async () => {
    const runs = [
      await followed('@tidewater'),
      await followed('@tidewater', { checkMinutes: 15 }),
      await followed('@tidewater'),
    ];
    await check(...runs);
    const before = youtube().requests.total;
    await steps.service.query('UPDATE sources SET next_check_at = clock_now()');
    // Without the pages before, which would serve them, they are due long enough for the process to know that one page is later.
    await steps.service.app.get<Cache>(CACHE_MANAGER).clear();
    await steps.pass(60);
    await steps.finish();
    expect(youtube().requests.total - before).toBe(1);
    for (const run of runs) expect(await run.row()).toMatchObject({ is_checked: true });
  });

  it('is due at the same time for all subscriptions to the channel', async () => {
    const runs = [
      await followed('@tidewater'),
      await followed('@tidewater'),
      await followed('@tidewater', { checkMinutes: 15 }),
    ];
    const [first, second, often] = await Promise.all(
      runs.map(async (run) => (await run.row())['next_check_at'] as Date),
    );
    expect(second).toEqual(first);
    expect((Number(first) - Number(often)) % (15 * 60_000)).toBe(0);
  });

  it('that was asked for while another one runs is not lost', async () => {
    const run = await followed('@tidewater');
    await run.dueNow();
    const source = await steps.claimedSource();
    await steps.pass(1);
    await run.dueNow();
    await steps.runSource(source);
    expect(await steps.claimedSource()).toMatchObject({ isCheck: true });
  });

  it.each(['@tidewater', '@nobody-at-all'])(
    'that fails neither consumes one that was asked for meanwhile, nor undoes that the caller lets it go on: %s',
    async (channel) => {
      const run = await followed(channel);
      youtube().changeChannel({ channel: '@tidewater', terminated: true });
      await run.dueNow();
      const source = await steps.claimedSource();
      await steps.pass(1);
      await (channel === '@tidewater' ? run.dueNow() : run.change('running'));
      await steps.runSource(source);
      await steps.turn();
      expect(await run.row()).toMatchObject({ check_in: 0 });
      expect(await steps.claimedSource()).toMatchObject({ isCheck: true });
    },
  );

  it.each([false, true])(
    'that is asked for, or due to a pause that ends, in the middle of a walk reads the newest uploads (failed: %s)',
    async (fails) => {
      const run = await followed('@tidewater');
      const later: string[] = [];
      for (const goOn of [() => run.dueNow(), () => run.change('paused').then(() => run.change('running'))]) {
        later.push(...youtube().publish({ channel: '@tidewater', count: 150 }));
        await run.dueNow();
        await steps.steps(1);
        later.push(...youtube().publish({ channel: '@tidewater' }));
        await steps.pass(1);
        // A page that fails meanwhile delays what is left of the walk, and not the check.
        if (fails) {
          youtube().setFaults({ kind: '500', match: { kind: 'browse' } });
          await steps.steps(1);
          youtube().setFaults();
          await steps.pass(1);
        }
        await goOn();
        await steps.finish();
        expect([...(await run.feedIds())].sort()).toEqual([...later].sort());
      }
    },
  );
});

describe('checks that are asked for all the time', () => {
  it('let a walk of several pages end, and the videos have their turn', async () => {
    const run = await followed('@tidewater');
    const published = youtube().publish({ channel: '@tidewater', count: 350 });
    await run.dueNow();
    for (let pages = 0; pages < 14; pages++) {
      const source = await steps.claimedSource();
      await steps.pass(1);
      await run.dueNow();
      await steps.runSource(source);
    }
    await steps.run(await steps.claimed());
    expect(await run.row()).toMatchObject({ total: published.length, reason: null });
    expect((await run.feedIds()).length).toBeGreaterThan(0);
  });
});

describe('videos that the platform blocks', () => {
  it('wait for the end of the block also when a check succeeds, or the caller changes the interval', async () => {
    const run = await followed('@tidewater');
    await steps.service.query(`UPDATE jobs SET reason = 'upstream_blocked', setbacks = 4 WHERE id = '${run.id}'`);
    youtube().publish({ channel: '@tidewater', count: 3 });
    await run.dueNow();
    await steps.steps(1);
    expect(await run.row()).toMatchObject({ state: 'running', reason: 'upstream_blocked', setbacks: 4, pending: 3 });
    await steps.service.query(`
      UPDATE sources SET next_check_at = clock_now() + interval '1 hour';
      UPDATE jobs SET next_run_at = clock_now() + interval '60 s' WHERE id = '${run.id}'`);
    await run.change(null, 86_400);
    expect(await run.row()).toMatchObject({ run_in: 60 });
    await steps.finish();
    await steps.pass(60);
    await steps.steps(1);
    expect(await run.row()).toMatchObject({ reason: null, setbacks: 0, succeeded: 1, pending: 2 });
  });
});

describe('a channel that cannot be read', () => {
  it('pauses a subscription at once when it does not exist', async () => {
    const run = await followed('@nobody-at-all');
    expect(await run.row()).toMatchObject({ state: 'paused', reason: 'channel_not_found' });
    expect(await run.events()).toMatchObject([
      { type: 'subscription.paused', data: { subscriptionId: run.id, reason: 'channel_not_found' } },
    ]);
    youtube().changeChannel({ channel: '@tidewater', handle: '@nobody-at-all' });
    await check(run);
    expect(await run.row()).toMatchObject({ state: 'running', reason: null, is_checked: true });
    const logged = loggedTransitions(steps.service, 'subscription_state_changed');
    expect(logged).toEqual(expect.arrayContaining(['source: paused to running', 'source: running to paused']));
    expect(drawnTransitions('a subscription')).toEqual(expect.arrayContaining(logged));
  });

  it('is tried again for three days, then daily, and goes on with what was missed', async () => {
    const run = await followed('@tidewater');
    youtube().changeChannel({ channel: '@tidewater', terminated: true });
    await check(run);
    expect(await run.row()).toMatchObject({ state: 'running', reason: 'channel_not_found', check_in: 30 });
    for (let days = 0; days < 3; days++) {
      await steps.pass(DAY - HOUR);
      await check(run);
      await steps.pass(HOUR);
    }
    await check(run);
    expect(await run.row()).toMatchObject({ state: 'paused', reason: 'channel_not_found', check_in: DAY });
    youtube().changeChannel({ channel: '@tidewater', terminated: false });
    const published = youtube().publish({ channel: '@tidewater' });
    await check(run);
    expect(await run.row()).toMatchObject({ state: 'running', reason: null });
    expect(await run.feedIds()).toEqual(published);
  });

  it('is stated while it holds up the checks, also when videos are fetched meanwhile', async () => {
    const run = await followed('@tidewater');
    youtube().publish({ channel: '@tidewater' });
    await run.dueNow();
    await steps.steps(1);
    youtube().changeChannel({ channel: '@tidewater', terminated: true });
    await steps.pass(1);
    await check(run);
    expect(await run.row()).toMatchObject({
      state: 'running',
      reason: 'channel_not_found',
      pending: 1,
      is_checked: true,
    });
    youtube().changeChannel({ channel: '@tidewater', terminated: false });
    await steps.pass(30);
    await steps.finish();
    expect(await run.row()).toMatchObject({ state: 'running', reason: null, setbacks: 0 });
    passInProcess(11);
    await steps.pass(600);
    await steps.finish();
    expect((await run.events()).map(({ type }) => type)).toEqual(['upload.ready']);
  });

  it('is not taken for unread while nobody has tried to read it', async () => {
    const [idle, paused] = [await followed('@tidewater'), await followed('@tidewater')];
    youtube().changeChannel({ channel: '@tidewater', terminated: true });
    await check(paused);
    await paused.change('paused');
    await steps.pass(4 * DAY);
    await paused.change('running');
    await check(idle, paused);
    for (const run of [idle, paused]) expect(await run.row()).toMatchObject({ state: 'running', check_in: 30 });
  });
});

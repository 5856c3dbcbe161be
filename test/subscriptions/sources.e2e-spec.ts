import { Client } from 'pg';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SourceRepository } from '../../src/jobs/sources/source.repository.js';
import { channelByPath } from '../fake-youtube/catalogue/catalogue.js';
import { WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { LONG, PRIVATE } from '../fake-youtube/catalogue/playlists.js';
import { until } from '../harness/until.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { valueOf } from '../quota/quota-database.js';
import { SubscriptionRun } from './subscription-run.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;

let steps: SliceSteps;
beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0 } });
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());

const youtube = () => steps.service.fakeYoutube;
const lists = () => youtube().requests.count({ kind: 'browse' });
const sorted = (ids: readonly unknown[]) => [...ids].sort();

async function followed(channel: string, options: Parameters<typeof SubscriptionRun.create>[2] = {}) {
  const run = await SubscriptionRun.create(steps, channel, options);
  await steps.finish();
  return run;
}

async function check(run: SubscriptionRun): Promise<void> {
  await run.dueNow();
  await steps.finish();
}

/** Copies a subscription. */
async function copies(run: SubscriptionRun, count: number): Promise<void> {
  await steps.service.query(`CREATE TEMP TABLE copied AS SELECT * FROM jobs WHERE id = '${run.id}';
    INSERT INTO jobs SELECT (json_populate_record(copied, json_build_object('id', 'sub_' || number))).*
      FROM copied, generate_series(1, ${count}) number; DROP TABLE copied`);
}

describe('a channel that many follow', () => {
  it('is read by one request for thirty subscriptions', async () => {
    const run = await followed('@tidewater');
    const organization = await steps.service.organization();
    for (let count = 1; count < 30; count++) await SubscriptionRun.create(steps, '@tidewater', { organization });
    await steps.finish();
    const before = youtube().requests.total;
    await steps.pass(2 * HOUR);
    await steps.finish();
    expect(youtube().requests.total - before).toBe(1);
    expect(await run.row()).toMatchObject({ is_checked: true });
  });

  it('is read by one request for two organizations when one check is due, and both get what is new', async () => {
    const [one, other] = [await followed('@tidewater'), await followed('@tidewater', { checkMinutes: 1_440 })];
    expect(one.organization.id).not.toBe(other.organization.id);
    const published = youtube().publish({ channel: '@tidewater' });
    const before = lists();
    await one.dueNow();
    await steps.finish();
    // The list, and beside it that of the Shorts, because something is new.
    expect(lists() - before).toBe(2);
    for (const run of [one, other]) expect(await run.feedIds()).toEqual(published);
  });

  it('counts as read when a check finds only which channel its name is', async () => {
    const unread = () => valueOf(steps.service.app.get(Registry), 'ct_subscription_checks_total', 'unread');
    const before = await unread();
    expect(await (await followed('@tidewater')).row()).toMatchObject({ source_id: expect.stringMatching(/^UC/) });
    expect(await unread()).toBe(before);
  });

  it('is read once after an outage, however many checks were missed', async () => {
    const channels = ['@3-videos-no-1', '@3-videos-no-2', '@3-videos-no-3'];
    for (const channel of channels) for (const minutes of [15, 60]) await followed(channel, { checkMinutes: minutes });
    const before = youtube().requests.total;
    await steps.pass(2 * DAY);
    await steps.finish();
    expect(youtube().requests.total - before).toBe(channels.length);
  });

  it('is checked at the shortest interval that one of them asked for, as long as that one wants checks', async () => {
    const [often, seldom] = [await followed('@tidewater', { checkMinutes: 15 }), await followed('@tidewater')];
    expect((await seldom.row())['check_in']).toBeLessThanOrEqual(15 * 60);
    const interval = async () => {
      const [row] = await steps.service.query(`SELECT source_interval(id) AS seconds FROM sources`);
      return row?.['seconds'];
    };
    expect(await interval()).toBe(15 * 60);
    await often.change('paused');
    expect(await interval()).toBe(HOUR);
    await seldom.change('paused');
    await steps.pass(DAY);
    const before = youtube().requests.total;
    expect(await steps.step()).toBe(false);
    expect(youtube().requests.total).toBe(before);
    const published = youtube().publish({ channel: '@tidewater' });
    await seldom.change('running');
    await steps.finish();
    expect(await seldom.feedIds()).toEqual(published);
  });

  it('gives each of 120 subscriptions 1,200 uploads at once, in turns of some', async () => {
    const run = await followed('@tidewater');
    await copies(run, 119);
    const published = youtube().publish({ channel: '@tidewater', count: 1_200 });
    await run.dueNow();
    for (let turns = 0; (await steps.service.app.get(SourceRepository).claim(null, false)) === undefined; turns++)
      await steps.runSource(await steps.claimedSource());
    await steps.pass(120);
    let turns = 0;
    for (let source = await steps.service.app.get(SourceRepository).claim(null, false); source; turns++) {
      await steps.runSource(source);
      source = await steps.service.app.get(SourceRepository).claim(null, false);
    }
    expect(turns).toBeGreaterThanOrEqual(12);
    const taken = await steps.service.query(`SELECT count(*)::int AS videos, count(DISTINCT job_id)::int AS jobs,
      count(DISTINCT video_id)::int AS different FROM job_videos`);
    expect(taken).toEqual([{ videos: 120 * published.length, jobs: 120, different: published.length }]);
  }, 120_000);

  it('delivers nothing to a later subscription of what it has found before', async () => {
    const early = await followed('@tidewater');
    const former = youtube().publish({ channel: '@tidewater', count: 2 });
    const late = await followed('@tidewater');
    const later = youtube().publish({ channel: '@tidewater' });
    await check(late);
    expect(sorted(await early.feedIds())).toEqual(sorted([...former, ...later]));
    expect(await late.feedIds()).toEqual(later);
    expect(await late.charged()).toBe(1);
  });

  it('gives them no turn when another one begins deeper in its list, or none of it is new', async () => {
    const run = await followed('@archive-300x96');
    const taken = async () => {
      const [row] = await steps.service.query(`SELECT xmin FROM jobs WHERE id = '${run.id}'`);
      return row?.['xmin'];
    };
    const before = await taken();
    const late = await followed('@archive-300x96', { start: 120 });
    expect(await late.row()).toMatchObject({ total: 120 });
    expect(await taken()).toBe(before);
    const published = youtube().publish({ channel: '@archive-300x96' });
    await check(late);
    expect(await run.feedIds()).toEqual(published);
  });

  it.each(['goes on', 'is checked'] as const)(
    'stores a check while a call waits for it by which a subscription %s',
    async (change) => {
      const run = await followed('@tidewater');
      youtube().publish({ channel: '@tidewater' });
      youtube().setFaults({ kind: '500', match: { kind: 'player' } });
      await check(run);
      if (change === 'goes on') await run.change('paused');
      const storing = new Client({ connectionString: steps.service.databaseUrl });
      await storing.connect();
      try {
        await storing.query('BEGIN; SELECT FROM sources FOR UPDATE');
        const call = change === 'goes on' ? run.change('running') : run.dueNow();
        await until(async () => (await steps.service.query(WAITING_FOR_LOCKS)).length > 0);
        // As for a subscription of the same organization that takes what was found.
        await storing.query('SELECT FROM job_queues FOR UPDATE NOWAIT; COMMIT');
        await call;
      } finally {
        await storing.end();
      }
    },
  );

  it('is checked for all while the rows of one organization are held, which delays only who takes what it found', async () => {
    const [one, other] = [await followed('@tidewater'), await followed('@tidewater')];
    const [first] = youtube().publish({ channel: '@tidewater' });
    await check(other);
    await steps.pass(60);
    const [second] = youtube().publish({ channel: '@tidewater' });
    const holding = new Client({ connectionString: steps.service.databaseUrl });
    await holding.connect();
    const source = () => steps.service.query('SELECT next_check_at > clock_now() AS is_checked, setbacks FROM sources');
    try {
      await holding.query('BEGIN');
      const held = await holding.query('SELECT FROM job_queues WHERE organization_id = $1 FOR UPDATE', [
        one.organization.id,
      ]);
      expect(held.rowCount).toBe(1);
      await other.dueNow();
      await steps.steps(1);
      expect(await source()).toEqual([{ is_checked: true, setbacks: 0 }]);
    } finally {
      await holding.end();
    }
    await steps.pass(30);
    await steps.finish();
    expect(await source()).toEqual([{ is_checked: true, setbacks: 0 }]);
    for (const run of [one, other]) expect(await run.feedIds()).toEqual([first, second]);
  });

  it('is not forgotten while one follows it, and removed with the last', async () => {
    const [one, other] = [await followed('@tidewater'), await followed('@tidewater')];
    const sources = () => steps.service.query('SELECT id FROM sources');
    for (const [run, left] of [
      [one, 1],
      [other, 0],
    ] as const) {
      await steps.service.query(`SELECT job_delete('${run.organization.id}', '${run.id}')`);
      await steps.remove();
      expect(await sources()).toHaveLength(left);
    }
    expect(await steps.service.query('SELECT FROM source_uploads')).toEqual([]);
  });
});

describe('a list that is odd once', () => {
  it('delivers and charges nothing of it, and what is new after it', async () => {
    const channel = '@archive-300x95';
    const run = await followed(channel);
    const uploads =
      channelByPath(`/${channel}`)
        ?.uploads()
        .map(({ id }) => id) ?? [];
    youtube().changeChannel({ channel, order: uploads.toReversed() });
    await check(run);
    youtube().changeChannel({ channel, order: uploads });
    const published = youtube().publish({ channel });
    await steps.pass(1);
    await check(run);
    expect(await run.feedIds()).toEqual(published);
    expect(await run.charged()).toBe(1);
  });
});

describe('the start of a subscription', () => {
  it.each(['@tidewater', '@archive-1500x95'])(
    'above a video that is not listed delivers and charges nothing of %s, and what comes later',
    async (channel) => {
      const run = await followed(channel, { start: 'not-listed_' });
      expect(await run.row()).toMatchObject({ total: 0, start_found: false });
      const published = youtube().publish({ channel });
      await check(run);
      expect(await run.feedIds()).toEqual(published);
      expect(await run.charged()).toBe(1);
    },
  );

  it('is read as deep as it needs of a channel that others follow, to whom that is nothing new', async () => {
    const channel = '@archive-300x95';
    const uploads =
      channelByPath(`/${channel}`)
        ?.uploads()
        .map(({ id }) => id) ?? [];
    const other = await followed(channel);
    const [newest = ''] = youtube().publish({ channel });
    const [deep, some] = [
      await SubscriptionRun.create(steps, channel, { start: uploads[140] ?? '' }),
      await SubscriptionRun.create(steps, channel, { start: 3 }),
    ];
    await steps.finish();
    expect(await deep.row()).toMatchObject({ total: 141, start_found: true });
    expect(sorted(await some.feedIds())).toEqual(sorted([newest, ...uploads.slice(0, 2)]));
    expect(await other.feedIds()).toEqual([newest]);
  });

  it('waits for a check that begins after it, not for one that runs', async () => {
    const run = await followed('@tidewater');
    await run.dueNow();
    const running = await steps.claimedSource();
    const [video] = youtube().publish({ channel: '@tidewater' });
    const late = await SubscriptionRun.create(steps, 'UCtidewater_____________', { start: 1 });
    await steps.runSource(running);
    expect(await late.row()).toMatchObject({ place: -1, total: 0 });
    await steps.finish();
    expect(await late.feedIds()).toEqual([video]);
  });
});

describe('a playlist that is followed', () => {
  const ids = LONG.videos().map(({ id }) => id);

  it('delivers what is added anywhere in it, and nothing that it had before', async () => {
    const run = await followed('', { playlist: LONG.id });
    expect(await run.row()).toMatchObject({ total: 0, state: 'running' });
    const [first = '', middle = '', last = ''] = youtube().publish({ channel: '@tidewater', count: 3 });
    youtube().changePlaylist({
      playlist: LONG.id,
      videoIds: [first, ...ids.slice(0, 150), middle, ...ids.slice(150), last],
    });
    await check(run);
    expect(sorted(await run.feedIds())).toEqual(sorted([first, middle, last]));
    expect(await run.charged()).toBe(3);
  });

  it('costs one request when its first page and the stated number are the same', async () => {
    const run = await followed('', { playlist: LONG.id });
    const before = youtube().requests.total;
    await check(run);
    expect(youtube().requests.total - before).toBe(1);
    const [added = ''] = youtube().publish({ channel: '@tidewater' });
    youtube().changePlaylist({ playlist: LONG.id, videoIds: [...ids, added] });
    await check(run);
    expect(await run.feedIds()).toEqual([added]);
  });

  it('begins with its first videos, or those above one', async () => {
    const some = await followed('', { playlist: LONG.id, start: 2 });
    const above = await followed('', { playlist: LONG.id, start: ids[120] ?? '' });
    expect(sorted(await some.feedIds())).toEqual(sorted(ids.slice(0, 2)));
    expect(await above.row()).toMatchObject({ total: 120, start_found: true });
  });

  it('pauses when it cannot be found', async () => {
    const run = await followed('', { playlist: PRIVATE.id });
    expect(await run.row()).toMatchObject({ state: 'paused', reason: 'playlist_not_found', check_in: DAY });
  });
});

describe('a clock that is a day ahead for a moment', () => {
  it('delays neither checks, nor what subscriptions take, nor a check that is asked for', async () => {
    const run = await followed('@tidewater');
    await steps.pass(DAY);
    await steps.finish();
    await check(run);
    await steps.pass(-DAY);
    const published = youtube().publish({ channel: '@tidewater' });
    await steps.finish();
    expect(await run.feedIds()).toEqual(published);
    expect((await run.row())['check_in']).toBeLessThanOrEqual(HOUR);
    const request = `SELECT retry_after_seconds FROM subscription_check('${run.organization.id}', '${run.id}', 10)`;
    expect(await steps.service.query(request)).toEqual([{ retry_after_seconds: null }]);
  });
});

it('an upload is wanted by its kind in the database as in the walk', async () => {
  const wanted = async (kind: string | null, kinds: string) => {
    const [row] = await steps.service.query(
      `SELECT source_is_wanted(${kind ? `'${kind}'` : 'NULL'}, '{${kinds}}') AS wanted`,
    );
    return row?.['wanted'];
  };
  const kinds = ['short', null, 'live', 'video'];
  const all = (list: string) => Promise.all(kinds.map((kind) => wanted(kind, list)));
  expect(await all('video')).toEqual([false, true, true, true]);
  expect(await all('live')).toEqual([false, false, true, false]);
  expect(await all('')).toEqual([true, true, true, true]);
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { PublishedState } from '../fake-youtube/publish/published-video.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';

describe('finality', () => {
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
});

describe('old dates', () => {
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
    it.each(['@25-videos-no-504', '@archive-300x95'])(
      'are delivered, also when they fill pages: %s',
      async (channel) => {
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
      },
    );

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
});

describe('many uploads', () => {
  const FEW = 1_000;
  const MANY = 40_000;
  /** Indexes are deeper by a block or two; whatever reads each of the uploads reads far more. */
  const blocksMax = (few: number): number => 3 * few + 100;
  let steps: SliceSteps;
  let run: SubscriptionRun;
  let source: string;
  let checks = 0;

  beforeAll(async () => {
    steps = await SliceSteps.start();
    run = await SubscriptionRun.create(steps, '@tidewater');
    await steps.finish();
    source = String((await run.row())['source_id']);
  });
  afterAll(() => steps.service.close());

  /** Adds uploads that the source has found, some with results. */
  async function addUploads(first: number, last: number): Promise<void> {
    await steps.service.query(`
    INSERT INTO source_uploads (source_id, video_id, position, first_position, state, found_at)
      SELECT '${source}', 'upload' || number, number, number, 'new', clock_now() FROM generate_series(${first}, ${last}) number;
    UPDATE sources SET last_position = ${last}, seen_position = ${last};
    INSERT INTO job_videos (job_id, position, video_id, upload, state, sequence, decided_at, entry, cached)
      SELECT '${run.id}', number, 'upload' || number, '{}', 'succeeded', number, clock_now(), '\\x00'::bytea, true
        FROM generate_series(${first}, ${last}) number;
    UPDATE jobs SET place = ${last}, last_position = ${last}, succeeded = ${last}, cached = ${last}, total = ${last}, remove_at = clock_now()
      WHERE id = '${run.id}'`);
    await steps.service.query('VACUUM ANALYZE');
  }

  /** The blocks that a statement reads which has run before. */
  async function blocksOf(statement: string): Promise<number> {
    const blocks: number[] = [];
    for (let time = 0; time < 3; time++) {
      await steps.service.query('UPDATE sources SET next_check_at = clock_now(), claim = NULL');
      const [row] = await steps.service.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
      const [{ Plan: plan }] = row?.['QUERY PLAN'] as [{ Plan: Record<string, number> }];
      blocks.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
    }
    return Math.min(...blocks);
  }

  async function blocksOfAll(): Promise<Record<string, number>> {
    const claimed = (table: string, id: string): string => `WITH claimed AS MATERIALIZED (
    UPDATE ${table} SET claim = gen_random_uuid(), claimed_until = clock_now() WHERE id = '${id}' RETURNING claim)`;
    const listed = { state: 'new', is_old: false, upload: '{}', kind: 'video', published_at: null, ranked: false };
    const uploads = [{ ...listed, video_id: `new ${(checks += 1)}` }];
    const page = JSON.stringify({ uploads, found: 1, decided: 'seen', end: 'ended', sees_all: true, for_starts: true });
    const slice = `{"videos":[],"fetched":0,"delay_seconds":0,"setbacks":0,"restart_list":false}`;
    const statements = {
      'known uploads': `SELECT position FROM source_uploads WHERE source_id = '${source}'
      AND video_id = ANY (ARRAY(SELECT 'upload' || number FROM generate_series(1501, 1510) number))`,
      claim: `SELECT source_claim(gen_random_uuid(), 60, NULL, true)`,
      starts: `SELECT source_starts(sources) FROM sources`,
      check: `${claimed('sources', source)} SELECT source_commit_page('${source}', claim, '${page}') FROM claimed`,
      slice: `${claimed('jobs', run.id)} SELECT job_commit_slice('${run.id}', claim, '${slice}', '', 0, 0) FROM claimed`,
      change: `SELECT subscription_change('${run.organization.id}', '${run.id}', 900, 'running', 0, NULL)`,
      request: `SELECT subscription_check('${run.organization.id}', '${run.id}', 0)`,
      removal: 'SELECT job_remove_batch(10)',
    };
    const blocks: Record<string, number> = {};
    for (const [name, statement] of Object.entries(statements)) blocks[name] = await blocksOf(statement);
    return blocks;
  }

  it('what checks and slices read does not grow with the uploads that a source has', async () => {
    await addUploads(1_001, 1_000 + FEW);
    const few = await blocksOfAll();
    await addUploads(1_101 + FEW, 1_000 + MANY);
    const many = await blocksOfAll();
    const grown = Object.entries(many).filter(([name, blocks]) => blocks > blocksMax(few[name] ?? 0));
    expect(grown.map(([name, blocks]) => ({ name, few: few[name], blocks }))).toEqual([]);
  });
});

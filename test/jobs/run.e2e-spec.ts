import { afterAll, beforeAll, beforeEach, describe, expect, it, afterEach, jest } from '@jest/globals';
import { JobsService } from '../../src/jobs/jobs.service.js';
import type { EntryJson, JobRun } from './job-run.js';
import { SliceSteps } from './slice-steps.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import type { PublishedState } from '../fake-youtube/publish/published-video.js';
import { NEW_JOB_EXAMPLE } from '../../src/jobs/dto/job.dto.js';

describe('running', () => {
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start();
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());

  async function finished(channel: string, request: Parameters<typeof JobRun.create>[3] = {}): Promise<JobRun> {
    const run = await steps.job(channel, request);
    await steps.finish();
    await run.verify();
    return run;
  }

  describe('an archive job', () => {
    it('stores the entries of the whole channel in its order, as a call returns them, and charges each transcript once', async () => {
      const { service } = steps;
      const run = await finished('@130-videos-no-2');
      const job = await run.get();
      expect(job).toMatchObject({
        state: 'completed',
        channel: { handle: '@130-videos-no-2' },
        summary: { total: 130, fetched: 130, pending: 0 },
        checkAgainSeconds: null,
      });
      expect(Date.parse(job.expiresAt ?? '') - Date.parse(job.finishedAt ?? '')).toBe(72 * 3_600_000);
      const entries = await run.entries();
      const places = entries.map((_, index) => index + 1);
      expect(entries.map(({ position }) => position)).toEqual(places);
      expect(entries.map(({ entry }) => entry.position)).toEqual(places);
      const call = await service.get('/channels/@130-videos-no-2/transcripts?limit=100', run.organization.key);
      const cached = ({ position: _, ...entry }: EntryJson) => ({ ...entry, cached: entry.ok });
      expect(entries.slice(0, 100).map(({ entry }) => cached(entry))).toEqual(
        (call.body as { results: EntryJson[] }).results.map(cached),
      );
    });

    it('ends at its limit, and before the video of since', async () => {
      const limited = await finished('@130-videos-no-2', { limit: 101 });
      const positions = await limited.entries();
      expect(positions).toHaveLength(101);
      const since = positions[99]?.entry.videoId ?? '';
      const newer = await finished('@130-videos-no-2', { since });
      expect((await newer.entries()).map(({ entry }) => entry.videoId)).toEqual(
        positions.slice(0, 99).map(({ entry }) => entry.videoId),
      );
      expect((await newer.get()).summary).toMatchObject({ total: 99, cached: 99, fetched: 0 });
      const none = await finished('@130-videos-no-2', { since: positions[0]?.entry.videoId ?? '' });
      expect(await none.get()).toMatchObject({ state: 'completed', summary: { total: 0 } });
    });

    it('of a channel without uploads is completed', async () => {
      for (const channel of ['@emptyslip', '@drydock'])
        expect(await (await finished(channel)).get()).toMatchObject({ state: 'completed', summary: { total: 0 } });
    });

    it('reads the languages that it was created with', async () => {
      const run = await finished('@harbourlight', { languages: ['de', 'en'], limit: 10 });
      // A live stream is tried again later; the results of a finished job do not wait for it.
      await run.cancel();
      const languages = (await run.entries()).flatMap(({ entry }) => Object.keys(entry.transcript));
      expect(languages).toContain('en');
      expect(languages.filter((language) => !/^(de|en)/.test(language))).toEqual([]);
    });

    it('of an unknown channel fails with that reason, and goes on when it is resumed', async () => {
      const unknown = await finished('@nobodyhere');
      expect(await unknown.get()).toMatchObject({ state: 'failed', reason: 'channel_not_found', channel: null });
      expect((await unknown.resume()).state).toBe('listing');
      await steps.finish();
      expect((await unknown.get()).state).toBe('failed');
    });

    it('reads the list again when the platform no longer accepts its place in it, without the uploads since its start', async () => {
      const { service } = steps;
      const run = await steps.job('@130-videos-no-2');
      await steps.steps(1);
      service.fakeYoutube.publish({ channel: '@130-videos-no-2', count: 2 });
      await service.query(`UPDATE jobs SET continuation = 'refused' WHERE id = '${run.id}'`);
      await steps.steps(1);
      expect(await run.get()).toMatchObject({ state: 'listing', summary: { total: 100 } });
      expect(await steps.step()).toBe(false);
      await steps.pass(30);
      await steps.finish();
      expect((await run.verify()).summary).toMatchObject({ total: 130, succeeded: 130, pending: 0 });
      const videos = (await run.entries()).map(({ entry }) => entry.metadata.title);
      expect([videos[0], videos.at(-1)]).toEqual(['Generated talk 130 of 130', 'Generated talk 1 of 130']);
    });
  });

  describe('the operations on a job:', () => {
    it('a canceled job that is resumed continues without repeating a video', async () => {
      const run = await steps.job('@60-videos-no-3');
      expect((await run.cancel()).state).toBe('canceled');
      expect((await run.resume()).state).toBe('queued');
      await steps.steps(2);
      expect((await run.cancel()).state).toBe('canceled');
      expect((await run.cancel()).state).toBe('canceled');
      expect(await steps.step()).toBe(false);
      expect(await run.verify()).toMatchObject({ summary: { total: 60, fetched: 25, pending: 35 } });
      expect(await run.entries()).toHaveLength(25);
      expect(await run.resume()).toMatchObject({ state: 'running', finishedAt: null, expiresAt: null });
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 60 } });
      await expect(run.cancel()).rejects.toMatchObject({ code: 'job_finished' });
      await expect(run.resume()).rejects.toMatchObject({ code: 'job_finished' });
    });

    it('expired results are removed, and a week later the job', async () => {
      const { app } = steps.service;
      const run = await finished('@3-videos-no-3');
      await steps.pass(72 * 3_600 + 60);
      await expect(run.entries()).rejects.toMatchObject({ code: 'results_expired' });
      await steps.remove();
      expect(await run.get()).toMatchObject({ state: 'completed', summary: { total: 3 } });
      expect(await steps.service.query(`SELECT FROM job_videos WHERE job_id = '${run.id}'`)).toEqual([]);
      await steps.pass(7 * 86_400);
      await steps.remove();
      await expect(app.get(JobsService).get(run.organization.id, run.id)).rejects.toMatchObject({
        code: 'job_not_found',
      });
      expect(await steps.service.query('SELECT sum(stored_bytes) FROM jobs WHERE expires_at < clock_now()')).toEqual([
        { sum: null },
      ]);
    });
  });
});

describe('the clock of the database', () => {
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
      const [deleted, other] = [
        await steps.job({ videos: ['hl-dinghy__'] }),
        await steps.job(`@3-videos-no-74${days}`),
      ];
      await steps.pass(days * DAY);
      await deleted.delete();
      await steps.pass(-days * DAY);
      await steps.remove();
      expect(await steps.service.query(`SELECT id FROM jobs`)).toEqual([{ id: other.id }]);
      await steps.finish();
      expect(await other.get()).toMatchObject({ state: 'completed' });
    });
  });
});

describe('a fact of a moment about a young video of a job', () => {
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

describe('many jobs', () => {
  const REQUEST = JSON.stringify(NEW_JOB_EXAMPLE.request);
  const FEW = 200;
  const MANY = 5_000;
  const ORGANIZATIONS = 50;
  /** Indexes are deeper by a block or two; whatever reads each of 25 times as many jobs reads far more. */
  const blocksMax = (few: number): number => 3 * few + 40;

  const STATEMENTS = {
    claim: 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL, true)',
    'claim of one organization': `SELECT * FROM job_claim(gen_random_uuid(), 60, 'org_of_many_1', true)`,
    sweep: `SELECT * FROM job_sweep('{pro}', 0, 0)`,
    removal: 'SELECT job_remove_batch(200)',
  };

  /** Of jobs of which no list was read. */
  const CLAIMS = {
    claim: 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL, true)',
    'claim of videos': 'SELECT * FROM job_claim(gen_random_uuid(), 60, NULL, false)',
    'claim of videos of one organization': `SELECT * FROM job_claim(gen_random_uuid(), 60, 'org_of_lists_1', false)`,
  };
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start();
  });
  afterAll(() => steps.service.close());

  /** Jobs of each kind that wait: for a worker, for quota, and for the end of the week after their results. */
  async function addJobs(first: number, last: number): Promise<void> {
    const organization = `'org_of_many_' || number % ${ORGANIZATIONS}`;
    await steps.service.query(`
    INSERT INTO organizations (id, name, plan) SELECT 'org_of_many_' || number, 'Many', 'pro'
      FROM generate_series(0, ${ORGANIZATIONS - 1}) number ON CONFLICT DO NOTHING;
    INSERT INTO api_keys (id, organization_id, name, prefix, hash)
      SELECT 'key_of_many_' || number, 'org_of_many_' || number, 'Many', 'ctk', sha256(number::text::bytea)
        FROM generate_series(0, ${ORGANIZATIONS - 1}) number ON CONFLICT DO NOTHING;
    INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, created_at, state, reason,
                      next_run_at, finished_at, expires_at, remove_at)
      SELECT 'job_' || kind || number, ${organization}, 'key_of_many_' || number % ${ORGANIZATIONS}, '${REQUEST}', 1,
             clock_now(), kind, CASE WHEN kind = 'paused' THEN 'plan_limit_exceeded' END,
             CASE WHEN kind = 'running' THEN clock_now() - interval '1 hour' END,
             CASE WHEN kind = 'completed' THEN clock_now() END, CASE WHEN kind = 'completed' THEN clock_now() END,
             CASE WHEN kind = 'completed' THEN clock_now() END
        FROM generate_series(${first}, ${last}) number, unnest('{running,paused,completed}'::text[]) kind;
    DO 'BEGIN WHILE job_remove_batch(200) > 0 LOOP END LOOP; END'`);
    await steps.service.query('VACUUM ANALYZE');
  }

  /** Organizations with jobs of which the list is due: the first one has most of them. */
  async function addLists(first: number, last: number): Promise<void> {
    await steps.service.query(`
    INSERT INTO organizations (id, name, plan) SELECT 'org_of_lists_' || number, 'Lists', 'pro'
      FROM generate_series(${first}, ${last}) number;
    INSERT INTO api_keys (id, organization_id, name, prefix, hash)
      SELECT 'key_of_lists_' || number, 'org_of_lists_' || number, 'Lists', 'ctk', sha256(('l' || number)::bytea)
        FROM generate_series(${first}, ${last}) number;
    INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, created_at, next_run_at)
      SELECT 'job_lists' || number || '_' || place, 'org_of_lists_' || owner, 'key_of_lists_' || owner, '${REQUEST}', 1,
             clock_now(), clock_now() - interval '1 hour'
        FROM generate_series(${first}, ${last}) number, generate_series(1, 2) place,
             LATERAL (SELECT CASE place WHEN 1 THEN number ELSE 1 END AS owner) owners`);
    await steps.service.query('VACUUM ANALYZE');
  }

  /** The blocks that a statement reads on a connection that has run it before. */
  async function blocksOf(statement: string): Promise<number> {
    const blocks: number[] = [];
    for (let run = 0; run < 5; run++) {
      const [row] = await steps.service.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
      const [{ Plan: plan }] = row?.['QUERY PLAN'] as [{ Plan: Record<string, number> }];
      blocks.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
    }
    return Math.min(...blocks);
  }

  async function blocksOfAll(statements: Record<string, string>): Promise<Record<string, number>> {
    const blocks: Record<string, number> = {};
    for (const [name, statement] of Object.entries(statements)) blocks[name] = await blocksOf(statement);
    return blocks;
  }

  /** The statements that read more when there is more to do. */
  async function grownOf(
    statements: Record<string, string>,
    add: (first: number, last: number) => Promise<void>,
  ): Promise<object> {
    await add(1, FEW);
    const few = await blocksOfAll(statements);
    await add(FEW + 1, MANY);
    const many = await blocksOfAll(statements);
    return Object.fromEntries(
      Object.keys(statements).flatMap((name) => {
        const [from = 0, to = 0] = [few[name], many[name]];
        return to > blocksMax(from) ? [[name, { from, to }]] : [];
      }),
    );
  }
  afterEach(() => steps.reset());

  describe('with 5,000 jobs that are due, 5,000 that wait for quota and 5,000 whose results were removed', () => {
    it('the workers look for what to do at the cost of 200 of each', async () => {
      expect(await grownOf(STATEMENTS, addJobs)).toEqual({});
      expect((await steps.claim())?.organizationId).toMatch(/^org_of_many_/);
    });
  });

  describe('with 5,000 organizations whose jobs wait for a page of their list, one of which has 5,000', () => {
    it('a claim costs as much as with 200, also one that may read no list and finds nothing', async () => {
      expect(await grownOf(CLAIMS, addLists)).toEqual({});
      expect(await steps.service.query(CLAIMS['claim of videos'])).toEqual([]);
      expect((await steps.claim())?.organizationId).toMatch(/^org_of_lists_/);
    });
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { BackgroundLoops } from '../../src/background/background-loops.js';
import { startService, type TestService } from '../harness/service.js';
import { JobRun } from './job-run.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { valueOf } from '../quota/quota-database.js';
import { TranscriptCache } from '../../src/transcripts/cache/transcript-cache.js';
import { until } from '../harness/until.js';
import { LEASES_SECONDS, SliceSteps } from './slice-steps.js';
import { JobWorker } from '../../src/jobs/work/job-worker.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { createJob, onJob, postJob } from './job-requests.js';

describe('workers', () => {
  const ENVIRONMENT = { JOB_CONCURRENCY: 2, JOB_SWEEP_SECONDS: 1 };
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: ENVIRONMENT });
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  describe('the workers of a process', () => {
    it('start a job when it is created, and run the jobs of several organizations to their end', async () => {
      const runs = [];
      for (let index = 0; index < 3; index++)
        runs.push(await JobRun.create(service, await service.organization(), `@60-videos-no-${30 + index}`));
      for (const run of runs) {
        await run.untilCompleted();
        expect((await run.verify()).summary.fetched).toBe(60);
      }
    });

    it('report each change of a state and each slice, and the metrics of all jobs', async () => {
      const run = await JobRun.create(service, await service.organization(), '@30-videos-no-35');
      await run.untilCompleted();
      const lines = service.logs
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ event, jobId }) => jobId === run.id && event !== 'request');
      expect(lines.map(({ event, from, to, slice }) => [event, from ?? slice, to])).toEqual([
        ['job_created', undefined, undefined],
        ['job_state_changed', 'queued', 'listing'],
        ['job_state_changed', 'listing', 'running'],
        ['slice_finished', 'listing', undefined],
        ['slice_finished', 'videos', undefined],
        ['job_state_changed', 'running', 'completed'],
        ['slice_finished', 'videos', undefined],
      ]);
      expect(lines.at(-1)).toMatchObject({ result: 'committed', counts: { succeeded: 5, fetched: 5, pending: 0 } });
      const { text } = await service.request('GET', '/metrics');
      expect(text).toMatch(/^ct_jobs\{state="completed"\} [1-9]/m);
      expect(text).toMatch(/^ct_jobs\{state="paused"\} 0$/m);
      expect(text).toMatch(/^ct_job_results_bytes [1-9]/m);
      expect(text).toMatch(/^ct_job_oldest_due_seconds 0$/m);
      expect(text).toMatch(/^ct_job_slices_total\{result="committed"\} [1-9]/m);
    });
  });

  describe('several processes', () => {
    let others: TestService[] = [];
    afterEach(async () => {
      for (const other of others) await other.close();
      others = [];
    });

    it('share the jobs, and a process that stops leaves its slice to the others without a charge for what it did not fetch', async () => {
      const stopping = await startService({ environment: ENVIRONMENT });
      others.push(stopping);
      const hold = stopping.fakeYoutube.hold({ kind: 'timedtext' });
      const run = await JobRun.create(stopping, await stopping.organization(), '@40-videos-no-36');
      await hold.arrived;
      await shutDownWorker(stopping);
      expect(await run.verify()).toMatchObject({ state: 'running', summary: { fetched: 0, pending: 40 } });
      expect(await stopping.query(`SELECT claim FROM jobs WHERE id = '${run.id}'`)).toEqual([{ claim: null }]);
      hold.release();
      const other = await startService({
        environment: ENVIRONMENT,
        databaseUrl: () => Promise.resolve(stopping.databaseUrl),
      });
      others.unshift(other);
      await run.untilCompleted();
      expect((await run.verify()).summary).toMatchObject({ fetched: 40 });
    });
  });

  async function shutDownWorker({ app }: TestService): Promise<void> {
    await app.get(BackgroundLoops).stop();
  }
});

describe('interruptions', () => {
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start({ interruptible: true });
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());

  async function reserved(run: JobRun): Promise<number> {
    const { reserved: count } = (await steps.service.get('/usage', run.organization.key)).body as { reserved: number };
    return count;
  }

  async function fetchedEntries(): Promise<number> {
    return valueOf(steps.service.app.get(Registry), 'ct_entries_total', 'fetched');
  }

  describe('a slice whose process is killed', () => {
    it('before it is stored charges nothing, and is repeated for free from the cache when its claim has ended', async () => {
      const run = await steps.listed('@30-videos-no-11');
      await steps.read(await steps.claimed());
      expect((await run.verify()).summary).toMatchObject({ total: 30, succeeded: 0, pending: 30 });
      expect(await reserved(run)).toBe(25);
      expect(await steps.step()).toBe(false);
      await steps.pass(LEASES_SECONDS);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { cached: 25, fetched: 5 } });
      expect(await reserved(run)).toBe(0);
      expect(await run.entries()).toHaveLength(30);
    });

    it('is repeated after growing pauses when it ends each process that runs it', async () => {
      const run = await steps.listed('@25-videos-no-16');
      await steps.claimed();
      for (const pauseSeconds of [0, 30, 60, 120]) {
        const [claim] = await steps.service.query(
          'SELECT extract(epoch FROM claimed_until - clock_now())::float AS seconds FROM jobs',
        );
        await steps.pass(Number(claim?.['seconds']) + pauseSeconds - 2);
        expect(await steps.claim()).toBeUndefined();
        await steps.pass(4);
        await steps.claimed();
      }
      await steps.pass(LEASES_SECONDS + 900);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 25 } });
    });

    it('is not stored by its process either when another one has repeated it', async () => {
      const run = await steps.listed('@25-videos-no-12');
      const { running: losing, release } = await steps.heldSlice();
      await steps.pass(LEASES_SECONDS);
      const repeated = await steps.claimed();
      expect(repeated.job.id).toBe(run.id);
      release();
      const before = { lost: await steps.slices('lost'), fetched: await fetchedEntries() };
      await losing;
      expect(await steps.slices('lost')).toBe(before.lost + 1);
      expect(await fetchedEntries()).toBe(before.fetched);
      expect((await run.verify()).summary).toMatchObject({ succeeded: 0 });
      await steps.run(repeated);
      expect((await run.verify()).summary).toMatchObject({ succeeded: 25, pending: 0 });
      expect(await reserved(run)).toBe(0);
    });

    it('is repeated when its reservation ended and its quota was given away before it was stored', async () => {
      const { service } = steps;
      const organization = await service.organization({ monthlyLimit: 4 });
      const run = await JobRun.create(service, organization, '@4-videos-no-13');
      await steps.steps(1);
      const { running, release } = await steps.heldSlice();
      await steps.pass(LEASES_SECONDS);
      const quota = service.app.get(QuotaService);
      const other = await quota.reserve({
        organizationId: organization.id,
        keyId: organization.keyId,
        requestId: 'call',
        resource: 'call',
        required: 4,
        leaseSeconds: 60,
      });
      await quota.settle(other.reservation?.id ?? '', 4);
      release();
      const before = await steps.slices('expired');
      await running;
      expect(await steps.slices('expired')).toBe(before + 1);
      expect((await run.verify()).summary).toMatchObject({ succeeded: 0, pending: 4 });
      expect(await steps.step()).toBe(false);
      await steps.pass(30);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { cached: 4, fetched: 0 } });
    });
  });

  describe('a running slice', () => {
    it('of a job that is canceled is stored and charged; the job stays canceled', async () => {
      const run = await steps.listed('@40-videos-no-15');
      const { running, release } = await steps.heldSlice();
      expect((await run.cancel()).checkAgainSeconds).toBe(2);
      release();
      await running;
      expect(await run.verify()).toMatchObject({
        state: 'canceled',
        summary: { fetched: 25, pending: 15 },
        checkAgainSeconds: null,
      });
      expect(await steps.step()).toBe(false);
    });

    it('of a job that is deleted is charged, and everything of the job is removed after that', async () => {
      const run = await steps.listed('@10-videos-no-16');
      const rows = (table: string, id: string) => steps.service.query(`SELECT FROM ${table} WHERE ${id} = '${run.id}'`);
      const { running, release } = await steps.heldSlice();
      await run.delete();
      await expect(run.get()).rejects.toMatchObject({ code: 'job_not_found' });
      await steps.remove();
      expect(await rows('job_videos', 'job_id')).toHaveLength(10);
      release();
      await running;
      expect((await steps.service.get('/usage', run.organization.key)).body).toMatchObject({ used: 10, reserved: 0 });
      expect(await steps.step()).toBe(false);
      await steps.remove();
      expect([await rows('jobs', 'id'), await rows('job_videos', 'job_id')]).toEqual([[], []]);
      const again = await JobRun.create(steps.service, run.organization, '@10-videos-no-16');
      await steps.finish();
      expect((await again.verify()).summary).toMatchObject({ cached: 10, fetched: 0 });
    });

    it('that is stopped stores what it has fetched, releases its claim, and counts no video as tried', async () => {
      const run = await steps.listed('@5-videos-no-17');
      const ids = await run.videoIds();
      const hold = steps.service.fakeYoutube.hold({ kind: 'player', videoId: ids[0] ?? '' });
      const stop = new AbortController();
      const cache = steps.service.app.get(TranscriptCache);
      const running = steps.run(await steps.claimed(), stop.signal);
      await hold.arrived;
      await until(async () => (await cache.getMany(ids, [])).filter((outcome) => outcome?.ok).length === 4);
      stop.abort();
      await running;
      expect((await run.verify()).summary).toMatchObject({ fetched: 4, pending: 1 });
      expect(
        await steps.service.query(`SELECT max(retries) AS retries FROM job_videos WHERE job_id = '${run.id}'`),
      ).toEqual([{ retries: 0 }]);
      expect(await reserved(run)).toBe(0);
      hold.release();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 5 } });
    });

    it('is stored after the database was unavailable for a moment', async () => {
      const run = await steps.listed('@6-videos-no-19');
      const { running, release } = await steps.heldSlice();
      steps.service.link.cut();
      release();
      await until(() => steps.service.logs.some((line) => line.includes('slice_commit_retried')));
      steps.service.link.join();
      await running;
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 6 } });
    });
  });

  describe('the slices of several jobs', () => {
    it('are each claimed by one worker, however many look at once', async () => {
      const organizations = [await steps.service.organization(), await steps.service.organization()];
      const runs = [];
      for (const organization of [...organizations, ...organizations])
        runs.push(await JobRun.create(steps.service, organization, '@2-videos-no-20'));
      const claims = await Promise.all(Array.from({ length: 12 }, () => steps.claim()));
      const claimed = claims.flatMap((slice) => (slice ? [slice.job.id] : []));
      expect(claimed.sort()).toEqual(runs.map(({ id }) => id).sort());
      await steps.pass(LEASES_SECONDS);
      await steps.finish();
      for (const run of runs) expect((await run.verify()).state).toBe('completed');
    });

    it('alternate between organizations, however many jobs each has', async () => {
      const [large, small] = [await steps.service.organization(), await steps.service.organization()];
      for (let job = 0; job < 3; job++) await JobRun.create(steps.service, large, '@60-videos-no-21');
      await JobRun.create(steps.service, small, '@60-videos-no-21');
      const turns: string[] = [];
      for (let turn = 0; turn < 8; turn++) {
        const slice = await steps.claimed();
        turns.push(slice.organizationId === large.id ? 'large' : 'small');
        await steps.run(slice);
      }
      expect(turns.join(' ')).toMatch(/^(large small large small large small|small large small large small large)/);
      await steps.finish();
    });
  });
});

describe('jobs of 10,000 videos that are created and deleted', () => {
  const VIDEOS_OF_A_JOB = 10_000;
  const JOBS_MAX = 20;
  const videos = Array.from({ length: VIDEOS_OF_A_JOB }, (_, index) => `v${String(index).padStart(10, '0')}`);
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0, JOB_SWEEP_SECONDS: 3_600 } });
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());

  it('are refused beyond the limit also when they are the first', async () => {
    const { id } = await steps.service.organization();
    const refusal = (videos: number) =>
      steps.service.query(`SELECT job_refusal('${id}', false, ${videos}, 20, 1000, 1000, 10) AS refusal`);
    expect(await refusal(10)).toEqual([{ refusal: null }]);
    expect(await refusal(11)).toEqual([{ refusal: 'too_many_videos' }]);
  });

  it('count until they are removed, in turn with those of other organizations, without a pause', async () => {
    const { service } = steps;
    const [{ key }, other] = [await service.organization(), await service.organization()];
    for (let job = 0; job < JOBS_MAX; job++)
      expect((await onJob(service, key, 'DELETE', await createJob(service, key, { videos }))).status).toBe(204);
    const refused = await postJob(service, key, { videos: ['hl-dinghy__'] });
    expect([refused.status, refused.body.error]).toMatchObject([
      429,
      { code: 'too_many_jobs', message: expect.stringContaining('200000 videos of jobs') as unknown },
    ]);
    // A job whose list is not known yet, and another organization, are not affected.
    const waiting = await createJob(service, key, { channel: '@tidewater' });

    const small = await createJob(service, other.key, { videos: videos.slice(0, 300) });
    expect((await onJob(service, other.key, 'DELETE', small)).status).toBe(204);
    const isStored = async (id: string) => (await service.query(`SELECT FROM jobs WHERE id = '${id}'`)).length === 1;
    const repository = service.app.get(SliceRepository);
    let batches = 0;
    for (; await isStored(small); batches++) await repository.removeBatch();
    expect(batches).toBeLessThanOrEqual(5);

    // Its room comes back as its videos are removed.
    expect((await postJob(service, key, { videos: ['hl-dinghy__'] })).status).toBe(202);
    await service.query(`UPDATE jobs SET next_run_at = NULL`);
    service.app.get(JobWorker).start(1, null);
    await until(async () => (await service.query('SELECT FROM jobs WHERE deleted_at IS NOT NULL')).length === 0);
    expect(await isStored(waiting)).toBe(true);
  }, 120_000);

  it('are stored by the end of their results, and removed with them', async () => {
    const run = await steps.job({ videos: videos.slice(0, 3) });
    await run.cancel();
    const counted = () => steps.service.query(`SELECT last_position - removed AS videos FROM jobs`);
    expect(await counted()).toEqual([{ videos: 3 }]);
    await steps.pass(73 * 3_600);
    await steps.remove();
    expect(await counted()).toEqual([{ videos: 0 }]);
    await steps.pass(7 * 86_400);
    await steps.remove();
    expect(await counted()).toEqual([]);
  });
});

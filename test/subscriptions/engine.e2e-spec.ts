import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { JobRun } from '../jobs/job-run.js';
import { drawnTransitions, loggedTransitions } from '../jobs/transitions.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { SubscriptionRun } from './subscription-run.js';
import { JobWorker } from '../../src/jobs/work/job-worker.js';
import { REPORTED_BUDGETS } from '../fake-youtube/budgets.js';
import { until } from '../harness/until.js';

describe('running subscriptions', () => {
  const DAY = 86_400;
  let steps: SliceSteps;
  let organizations: OrganizationsService;

  beforeAll(async () => {
    // Repeated requests pause for real, in a test of a hundred checks for most of the time of this file.
    steps = await SliceSteps.start({ environment: { UPSTREAM_RETRIES: 0 } });
    organizations = steps.service.app.get(OrganizationsService);
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());
  const publish = (count = 1): string[] => steps.service.fakeYoutube.publish({ channel: '@tidewater', count });

  async function followed(options: Parameters<typeof SubscriptionRun.create>[2] = {}): Promise<SubscriptionRun> {
    const run = await (await SubscriptionRun.create(steps, '@tidewater', options)).withWebhook();
    await steps.finish();
    return run;
  }

  async function check(run: SubscriptionRun): Promise<void> {
    await run.dueNow();
    await steps.finish();
  }

  describe('a subscription without quota', () => {
    it('pauses, goes on with its checks, and skips nothing when the limit grows', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 2 });
      const run = await followed({ organization });
      const first = publish(3);
      await check(run);
      expect(await run.row()).toMatchObject({ state: 'paused', reason: 'plan_limit_exceeded', pending: 1 });
      const later = publish(2);
      await check(run);
      expect(await run.row()).toMatchObject({
        state: 'paused',
        reason: 'plan_limit_exceeded',
        pending: 3,
        is_checked: true,
      });
      expect(await steps.sweep()).toEqual([]);

      await organizations.change(organization.id, { monthlyLimit: 100 });
      expect(await steps.sweep()).toMatchObject([{ job: { id: run.id, state: 'running' } }]);
      await steps.finish();
      expect([...(await run.feedIds())].sort()).toEqual([...first, ...later].sort());
      expect(await run.charged()).toBe(5);
      const paused = (await run.events()).filter(({ type }) => type === 'subscription.paused');
      expect(paused).toHaveLength(1);
    });

    it.each(['organization', 'key'])(
      'of its %s delivers what costs nothing, at a check and every hour',
      async (scope) => {
        const organization = await steps.service.organization(scope === 'key' ? {} : { monthlyLimit: 0 });
        const limited = await steps.service.app
          .get(ApiKeysService)
          .issue({ organizationId: organization.id, monthlyLimit: 0 });
        const payer = scope === 'key' ? { ...organization, keyId: limited.id } : organization;
        const run = await followed({ organization: payer, checkMinutes: 1_440 });
        const published = publish(30);
        await check(run);
        const paused = { state: 'paused', reason: 'plan_limit_exceeded' };
        expect(await run.row()).toMatchObject({ ...paused, pending: 30, run_in: 3_600 });

        const { key } = await steps.service.organization();
        const read = (index: number) => steps.service.get(`/videos/${published[index]}/transcript`, key);
        const { requests } = steps.service.fakeYoutube;
        const fetches = () => requests.count({ kind: 'player' }) + requests.count({ kind: 'timedtext' });
        await Promise.all([read(0), read(28)]);
        const first = fetches();
        await check(run);
        expect([...(await run.feedIds())].sort()).toEqual([published[0], published[28]].sort());
        expect(fetches()).toBe(first);

        await read(29);
        const all = requests.count();
        await steps.pass(3_600);
        await steps.finish();
        expect((await run.feedIds())[2]).toBe(published[29]);
        expect(requests.count()).toBe(all);
        expect(await run.row()).toMatchObject({ ...paused, cached: 3, pending: 27, run_in: 3_600 });
        expect(await run.charged()).toBe(0);
        const events = (await run.events()).map(({ type }) => type);
        expect(events).toEqual(['upload.ready', 'upload.ready', 'upload.ready', 'subscription.paused']);
        expect(await steps.sweep()).toEqual([]);
      },
    );

    it('stops when the plan has no subscriptions any more, until it has them again', async () => {
      const run = await followed();
      await organizations.change(run.organization.id, { plan: 'free' });
      const published = publish();
      await check(run);
      expect(await run.row()).toMatchObject({ state: 'paused', reason: 'plan_changed', next_run_at: null });
      await organizations.change(run.organization.id, { plan: 'pro' });
      await steps.sweep();
      await check(run);
      expect(await run.feedIds()).toEqual(published);
    });
  });

  describe('the caller of a subscription', () => {
    it('pauses it for good, also while a slice runs, whose results are stored', async () => {
      const run = await followed();
      const published = publish();
      await run.dueNow();
      await steps.steps(1);
      const { running, release } = await steps.heldSlice();
      await run.change('paused');
      release();
      await running;
      expect(await run.feedIds()).toEqual(published);
      expect(await run.row()).toMatchObject({ state: 'paused', reason: 'paused_by_caller', next_run_at: null });
      await steps.pass(DAY);
      await steps.sweep();
      expect(await steps.step()).toBe(false);

      const missed = publish();
      await run.change('running');
      await run.dueNow();
      await steps.finish();
      expect(await run.feedIds()).toEqual([...published, ...missed]);
    });

    it('changes the interval, which moves the next check', async () => {
      const run = await followed({ checkMinutes: 1_440 });
      await run.change(null, 900);
      expect((await run.row())['check_in']).toBeLessThanOrEqual(900);
    });

    it('may try pending uploads as often as it likes: that is none of their tries', async () => {
      const run = await followed();
      steps.service.fakeYoutube.publish({ channel: '@tidewater', as: 'uncaptioned' });
      for (let times = 0; times < 10; times++) await check(run);
      expect(await run.row()).toMatchObject({ pending: 1, failed: 0 });
    });

    it('does not prolong the waiting for a video by regular checks', async () => {
      const run = await followed();
      const [video = ''] = publish();
      steps.service.fakeYoutube.setFaults({ kind: '500', match: { videoId: video } });
      let hours = 0;
      for (; hours < 120 && (await run.row())['failed'] === 0; hours++) {
        await check(run);
        await steps.pass(3_600);
      }
      expect(await run.row()).toMatchObject({ pending: 0, failed: 1 });
      expect(hours).toBeGreaterThan(72);
    });

    it('has a stream asked for again that was live when it was listed', async () => {
      const run = await followed();
      steps.service.fakeYoutube.publish({ channel: '@tidewater', as: 'live' });
      for (let times = 0; times < 3; times++) {
        await check(run);
        const [video] = await steps.service.query(`SELECT retries FROM job_videos
        WHERE job_id = '${run.id}' AND state = 'pending'`);
        expect(video?.['retries']).toBe(Math.min(times + 1, 2));
      }
    });
  });

  describe('the slices of subscriptions', () => {
    it('charge once when the claim is lost to another process', async () => {
      const run = await followed();
      const published = publish(2);
      await run.dueNow();
      const lostSource = await steps.claimedSource();
      await steps.service.query(`UPDATE sources SET claimed_until = clock_now()`);
      // Before the lost one goes on, which could otherwise end in between.
      const source = await steps.claimedSource();
      await Promise.all([steps.runSource(lostSource), steps.runSource(source)]);
      await steps.turn();
      const lost = await steps.claimed();
      await steps.service.query(`UPDATE jobs SET claimed_until = clock_now() WHERE id = '${run.id}'`);
      const slice = await steps.claimed();
      await Promise.all([steps.run(lost), steps.run(slice)]);
      await steps.finish();
      expect(await run.feedIds()).toEqual(published);
      // What the slice that was lost has put into the cache costs nothing.
      const row = await run.row();
      expect(row).toMatchObject({ total: 2, succeeded: 2, failed: 0 });
      expect(await run.charged()).toBe(row['fetched']);
      expect(await run.events()).toHaveLength(2);
    });

    it('of 100 subscriptions do not hold up the job of another organization', async () => {
      const organization = await steps.service.organization();
      for (let count = 0; count < 100; count++) await SubscriptionRun.create(steps, '@tidewater', { organization });
      const job = await steps.job('@9-videos-no-4');
      await steps.run(await steps.claimed());
      expect(await job.get()).toMatchObject({ state: 'running' });
      await steps.run(await steps.claimed());
      expect(await job.verify()).toMatchObject({ state: 'completed' });
    });

    it('send no events when the subscription was deleted meanwhile', async () => {
      const run = await followed();
      publish();
      await run.dueNow();
      await steps.steps(1);
      const { running, release } = await steps.heldSlice();
      await steps.service.query(`SELECT job_delete('${run.organization.id}', '${run.id}')`);
      release();
      await running;
      expect(await run.row()).toMatchObject({ succeeded: 1 });
      expect(await run.events()).toEqual([]);
    });

    it('end when the organization is deleted', async () => {
      const [active, paused] = [await followed(), await followed()];
      await paused.change('paused');
      for (const run of [active, paused]) await organizations.delete(run.organization.id);
      await steps.sweep();
      await steps.finish();
      for (const run of [active, paused])
        expect(await run.row()).toMatchObject({ state: 'canceled', next_run_at: null });
      expect(await active.events()).toEqual([]);
    });

    it('run beside the jobs of their organization, in whose list and limits they are not', async () => {
      const run = await followed({ start: 2 });
      const job = await JobRun.create(steps.service, run.organization, '@9-videos-no-4');
      const { body } = await steps.service.get('/jobs', run.organization.key);
      expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual([job.id]);
      const [refusal] = await steps.service.query(
        `SELECT job_refusal('${run.organization.id}', false, 0, 2, 2, 1e12, 1) AS reason`,
      );
      expect(refusal).toEqual({ reason: null });
    });
  });

  describe('the results of a subscription', () => {
    it('are removed when they have expired, and not delivered again', async () => {
      const run = await followed({ resultsSeconds: DAY });
      const [first = ''] = publish();
      await check(run);
      await steps.pass(DAY / 2);
      const [second] = publish();
      await check(run);
      await steps.pass(DAY / 2);
      await steps.remove();
      expect(await run.row()).toMatchObject({ expired_sequence: 1, total: 2, succeeded: 2, failed: 0 });
      expect(await run.feedIds()).toEqual([second]);
      await steps.pass(DAY);
      await steps.remove();
      expect(await run.row()).toMatchObject({ expired_sequence: 2, stored_bytes: '0', remove_at: null });
      const [third] = publish();
      await check(run);
      expect(await run.feedIds()).toEqual([third]);
      expect(await steps.service.query(`SELECT state FROM job_videos WHERE video_id = '${first}'`)).toEqual([]);
    });

    it('are never before a cursor that a reader has: each follows those that were committed', async () => {
      const runs = [await followed(), await followed()];
      publish(60);
      for (const run of runs) await run.dueNow();
      await steps.steps(1);
      const read: string[] = [];
      let cursor = 0;
      const slices = (async () => {
        for (let slice = await steps.claim(); slice; slice = await steps.claim()) await steps.run(slice);
      })();
      const others = (async () => {
        for (let slice = await steps.claim(); slice; slice = await steps.claim()) await steps.run(slice);
      })();
      const [run] = runs;
      const readOn = async (): Promise<void> => {
        const page = (await run?.feed(cursor)) ?? [];
        read.push(...page.map(({ videoId }) => videoId));
        cursor += page.length;
      };
      let isDone = false;
      void Promise.all([slices, others]).then(() => (isDone = true));
      while (!isDone) await readOn();
      await readOn();
      expect(read).toEqual(await run?.feedIds());
      expect(read).toHaveLength(60);
      const [row] = await steps.service.query(`SELECT array_agg(sequence ORDER BY sequence) AS sequences FROM job_videos
      WHERE job_id = '${run?.id}' AND sequence IS NOT NULL`);
      expect(row?.['sequences']).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    });
  });

  it('changes its state in these tests only as the diagram in docs/jobs.md shows', () => {
    const drawn = drawnTransitions('a subscription');
    const logged = loggedTransitions(steps.service, 'subscription_state_changed');
    expect(logged.length).toBeGreaterThanOrEqual(4);
    expect(drawn).toEqual(expect.arrayContaining(logged));
  });
});

describe('callers first', () => {
  const DUE = 100;
  const LISTS_A_MINUTE = { burst: 60, perMinute: 60, blockSeconds: 60 };
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start({
      environment: { JOB_SWEEP_SECONDS: 1 },
      fakeYoutube: { budgets: { ...REPORTED_BUDGETS, list: LISTS_A_MINUTE } },
    });
  });
  afterAll(() => steps.service.close());

  it('a hundred checks that are due leave a process that has just started its lists for calls, and none is claimed that is not sent', async () => {
    const { service } = steps;
    const follower = await service.organization();
    for (let number = 0; number < DUE; number += 1)
      await SubscriptionRun.create(steps, `@3-videos-no-${number + 100}`, { organization: follower });
    const { key } = await service.organization();
    let calls = 0;
    const call = async () => (await service.get(`/channels/@3-videos-no-${++calls}/uploads`, key)).status;
    service.app.get(JobWorker).start(4, null);
    const finished = () => service.logs.filter((line) => /"source_finished".*"work":"check"/.test(line));
    await until(() => finished().length >= 10);
    for (let times = 0; times < 2; times += 1) {
      const claims = finished().length;
      expect(await call()).toBe(200);
      await until(() => finished().length > claims);
    }
    expect(service.logs.filter((line) => line.includes('youtube_block_opened'))).toEqual([]);
    // The log of a slice that was just stored comes after it.
    await until(async () => {
      const checks = await service.query(`SELECT id FROM sources WHERE next_check_at > clock_now()`);
      return checks.length === finished().filter((line) => line.includes('"sourceId":"UC')).length;
    });
  }, 120_000);
});

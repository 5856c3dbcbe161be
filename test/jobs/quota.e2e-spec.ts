import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { JobRun } from './job-run.js';
import { SliceSteps, LEASES_SECONDS } from './slice-steps.js';
import { UsageReports } from '../../src/quota/usage-report.js';
import type { TestOrganization } from '../harness/service.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';
import { createJob, onJob } from './job-requests.js';

describe('the quota', () => {
  let steps: SliceSteps;
  let organizations: OrganizationsService;

  beforeAll(async () => {
    steps = await SliceSteps.start();
    organizations = steps.service.app.get(OrganizationsService);
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());

  describe('a job at the end of the quota', () => {
    it('fetches what fits, pauses, and goes on when the limit grows and when the month turns', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 30 });
      const run = await JobRun.create(steps.service, organization, '@100-videos-no-4');
      await steps.finish();
      expect(await run.verify()).toMatchObject({
        state: 'paused',
        reason: 'plan_limit_exceeded',
        checkAgainSeconds: 3_600,
        summary: { fetched: 30, pending: 70 },
      });
      expect(await steps.sweep()).toEqual([]);

      await organizations.change(organization.id, { monthlyLimit: 40 });
      expect(await steps.sweep()).toMatchObject([{ job: { id: run.id, state: 'running' } }]);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', summary: { fetched: 40 } });

      await steps.pass(32 * 86_400);
      await steps.sweep();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', summary: { fetched: 80 } });
      await organizations.change(organization.id, { monthlyLimit: null });
      await run.resume();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 100 } });
    });

    it('of its key pauses without being tried again and again, and goes on when the month turns', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 100 });
      const keys = steps.service.app.get(ApiKeysService);
      const { id: keyId } = await keys.issue({ organizationId: organization.id, monthlyLimit: 7 });
      const run = await JobRun.create(steps.service, { ...organization, keyId }, '@18-videos-no-4');
      const other = await JobRun.create(steps.service, organization, '@5-videos-no-44');
      await steps.finish();
      expect(await other.verify()).toMatchObject({ state: 'completed' });
      expect(await run.verify()).toMatchObject({
        state: 'paused',
        reason: 'plan_limit_exceeded',
        summary: { fetched: 7, pending: 11 },
      });
      // The organization has room, the key has none.
      expect(await steps.sweep()).toEqual([]);
      await run.resume();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', summary: { fetched: 7 } });
      expect(await steps.sweep()).toEqual([]);

      await steps.pass(32 * 86_400);
      expect(await steps.sweep()).toMatchObject([{ job: { id: run.id, state: 'running' } }]);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', summary: { fetched: 14 } });
      await steps.pass(32 * 86_400);
      await steps.sweep();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 18 } });
    });

    it('of its key keeps a job of a deleted organization from nothing: it is canceled', async () => {
      const organization = await steps.service.organization();
      const keys = steps.service.app.get(ApiKeysService);
      const { id: keyId } = await keys.issue({ organizationId: organization.id, monthlyLimit: 0 });
      const run = await JobRun.create(steps.service, { ...organization, keyId }, '@5-videos-no-45');
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', reason: 'plan_limit_exceeded' });
      await organizations.delete(organization.id);
      expect(await steps.sweep()).toMatchObject([{ job: { id: run.id, state: 'canceled' } }]);
    });

    it('fails with onQuota=fail, keeps what was fetched, and can be resumed', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 3 });
      const run = await JobRun.create(steps.service, organization, '@9-videos-no-4', { onQuota: 'fail' });
      await steps.finish();
      expect(await run.verify()).toMatchObject({
        state: 'failed',
        reason: 'plan_limit_exceeded',
        summary: { fetched: 3, pending: 6 },
      });
      expect(await run.entries()).toHaveLength(3);
      await organizations.change(organization.id, { monthlyLimit: 9 });
      await run.resume();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 9 } });
    });

    it('waits for seconds while a call holds the rest of the quota', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 5 });
      const quota = steps.service.app.get(QuotaService);
      const run = await JobRun.create(steps.service, organization, '@5-videos-no-5');
      await steps.steps(1);
      const held = await quota.reserve({
        organizationId: organization.id,
        keyId: organization.keyId,
        requestId: 'call',
        resource: 'call',
        required: 5,
        leaseSeconds: 600,
      });
      await steps.steps(1);
      expect(await run.get()).toMatchObject({ state: 'running', checkAgainSeconds: 5, summary: { fetched: 0 } });
      expect(await steps.step()).toBe(false);
      await quota.settle(held.reservation?.id ?? '', 2);
      await steps.pass(5);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', summary: { fetched: 3, pending: 2 } });
    });

    it('finds what others paid for in the cache, without quota', async () => {
      const payer = await steps.job('@30-videos-no-6');
      await steps.finish();
      const free = await JobRun.create(
        steps.service,
        await steps.service.organization({ monthlyLimit: 0 }),
        '@30-videos-no-6',
      );
      await steps.finish();
      expect((await payer.verify()).summary).toMatchObject({ fetched: 30, cached: 0 });
      expect(await free.verify()).toMatchObject({ state: 'completed', summary: { fetched: 0, cached: 30 } });
    });
  });

  describe('what costs nothing', () => {
    /** Requests to the platform for videos. */
    const fetches = () =>
      steps.service.fakeYoutube.requests.count({ kind: 'player' }) +
      steps.service.fakeYoutube.requests.count({ kind: 'timedtext' });

    /** Another organization reads videos of the list of a job, each by a call of its own. */
    async function readByAnother(run: JobRun, ...positions: number[]): Promise<void> {
      const [{ key }, ids] = [await steps.service.organization(), await run.videoIds()];
      for (const position of positions) await steps.service.get(`/videos/${ids[position - 1]}/transcript`, key);
    }

    const positionsOf = async (run: JobRun) => (await run.entries()).map(({ position }) => position);

    it.each(['organization', 'key'])('goes on without quota of the %s, and is looked for every hour', async (scope) => {
      const organization = await steps.service.organization(scope === 'key' ? {} : { monthlyLimit: 0 });
      const keys = steps.service.app.get(ApiKeysService);
      const limited = await keys.issue({ organizationId: organization.id, monthlyLimit: 0 });
      const keyId = scope === 'key' ? limited.id : organization.keyId;
      const channel = scope === 'key' ? '@60-videos-no-71' : '@60-videos-no-72';
      const run = await JobRun.create(steps.service, { ...organization, keyId }, channel);
      await steps.finish();
      const paused = { state: 'paused', reason: 'plan_limit_exceeded', checkAgainSeconds: 3_600 };
      expect(await run.verify()).toMatchObject({ ...paused, summary: { pending: 60 } });

      await readByAnother(run, 58, 27);
      const fetched = fetches();
      await steps.pass(3_590);
      expect(await steps.step()).toBe(false);
      await steps.pass(3_600);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ ...paused, summary: { cached: 2, fetched: 0, pending: 58 } });
      expect(await positionsOf(run)).toEqual([27, 58]);
      expect(fetches()).toBe(fetched);

      await readByAnother(run, 1, 2, 59);
      await run.resume();
      await steps.finish();
      expect(await run.verify()).toMatchObject({ ...paused, summary: { cached: 5, fetched: 0 } });
      // It did not seem to go on meanwhile.
      const isOfJob = (line: string) => line.includes('"job_state_changed"') && line.includes(run.id);
      const states = steps.service.logs.filter(isOfJob).map((line) => (JSON.parse(line) as { to: string }).to);
      expect(states).toEqual(['listing', 'running', 'paused', 'running', 'paused']);
    });

    it('precedes the end of a job with onQuota=fail', async () => {
      const other = await steps.job('@40-videos-no-73');
      await steps.steps(1);
      await readByAnother(other, 3, 38);
      await other.delete();
      const organization = await steps.service.organization({ monthlyLimit: 0 });
      const run = await JobRun.create(steps.service, organization, '@40-videos-no-73', { onQuota: 'fail' });
      await steps.finish();
      expect(await run.verify()).toMatchObject({
        state: 'failed',
        reason: 'plan_limit_exceeded',
        summary: { cached: 2 },
      });
      expect(await positionsOf(run)).toEqual([3, 38]);
    });

    it('includes that a video has no transcript, which another call has found', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 0 });
      const [video = ''] = steps.service.fakeYoutube.publish({
        ...{ channel: '@tidewater', as: 'uncaptioned', below: 1 },
        publishedAt: new Date(Date.now() - 30 * 86_400_000),
      });
      const run = await JobRun.create(steps.service, organization, '@tidewater');
      await steps.finish();
      const { pending } = (await run.get()).summary;
      await readByAnother(run, (await run.videoIds()).indexOf(video) + 1);
      await steps.pass(3_600);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', summary: { failed: 1, pending: pending - 1 } });
      expect((await run.entries())[0]?.entry).toMatchObject({ videoId: video, ok: false });
    });

    it('does not end the pause of a job whose list is read again', async () => {
      const organization = await steps.service.organization({ monthlyLimit: 0 });
      const run = await JobRun.create(steps.service, organization, '@5-videos-no-74');
      await steps.steps(1);
      await steps.service.query(
        `UPDATE jobs SET listed_at = NULL, list_retry_at = clock_now() + interval '10 minutes'`,
      );
      await steps.finish();
      expect(await run.get()).toMatchObject({ state: 'paused', reason: 'plan_limit_exceeded' });
      const paused = steps.service.logs.length;
      await steps.pass(3_600);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', reason: 'plan_limit_exceeded' });
      expect(steps.service.logs.slice(paused).filter((line) => line.includes('"job_state_changed"'))).toEqual([]);
    });
  });

  describe('a job of an organization that changes', () => {
    it('pauses on a plan without jobs and goes on when the plan is back', async () => {
      const organization = await steps.service.organization();
      const run = await JobRun.create(steps.service, organization, '@30-videos-no-7');
      await steps.steps(2);
      await organizations.change(organization.id, { plan: 'free' });
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'paused', reason: 'plan_changed', summary: { fetched: 25 } });
      expect(await steps.sweep()).toEqual([]);
      await organizations.change(organization.id, { plan: 'pro' });
      await steps.sweep();
      await steps.finish();
      expect((await run.verify()).state).toBe('completed');
    });

    it('goes on and is charged after its key was revoked', async () => {
      const organization = await steps.service.organization();
      const run = await JobRun.create(steps.service, organization, '@5-videos-no-10');
      await steps.service.app.get(ApiKeysService).revoke(organization.keyId);
      await steps.finish();
      expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 5 } });
    });

    it('is canceled with its organization, whether or not a slice is due', async () => {
      const [first, second] = [await steps.service.organization(), await steps.service.organization()];
      const due = await JobRun.create(steps.service, first, '@5-videos-no-8');
      const paused = await JobRun.create(steps.service, second, '@5-videos-no-9');
      await organizations.change(second.id, { plan: 'free' });
      await steps.finish();
      await due.delete();
      const running = await JobRun.create(steps.service, first, '@40-videos-no-8');
      await steps.steps(2);
      for (const { id } of [first, second]) await organizations.delete(id);
      await steps.steps(1);
      expect((await running.verify()).state).toBe('canceled');
      expect(await steps.sweep()).toMatchObject([{ job: { id: paused.id, state: 'canceled' } }]);
    });
  });
});

describe('a key with a monthly limit', () => {
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start();
  });
  afterAll(() => steps.service.close());
  beforeEach(() => steps.reset());

  /** An organization with a key that may use any of its quota, and another one that may use `monthlyLimit`. */
  async function customer(monthlyLimit: number): Promise<TestOrganization & { limited: { id: string; key: string } }> {
    const organization = await steps.service.organization();
    const keys = steps.service.app.get(ApiKeysService);
    return { ...organization, limited: await keys.issue({ organizationId: organization.id, monthlyLimit }) };
  }

  /** What each key was charged this month. */
  async function chargedTo({ id }: TestOrganization): Promise<Record<string, number>> {
    const { rows } = await steps.service.app.get(UsageReports).report(id, { by: 'key' });
    return Object.fromEntries(rows.map(({ group, charged }) => [group, charged]));
  }

  it('pays within that limit for the job of another key that it resumes, until another one resumes it', async () => {
    const organization = await customer(1);
    const { key, keyId, limited } = organization;
    const job = await createJob(steps.service, key, { channel: '@12-videos-no-61' });
    await onJob(steps.service, key, 'POST', `${job}/cancel`);
    expect((await onJob(steps.service, limited.key, 'POST', `${job}/resume`)).status).toBe(200);
    await steps.finish();
    expect((await steps.service.get(`/jobs/${job}`, key)).body).toMatchObject({
      ...{ state: 'paused', reason: 'plan_limit_exceeded' },
      summary: { fetched: 1, pending: 11 },
    });
    expect(await chargedTo(organization)).toEqual({ [limited.id]: 1 });
    // One that is not paused, canceled or failed does not change, and stays with its key.
    await onJob(steps.service, key, 'POST', `${job}/resume`);
    await onJob(steps.service, limited.key, 'POST', `${job}/resume`);
    await steps.finish();
    expect((await steps.service.get(`/jobs/${job}`, key)).body).toMatchObject({ state: 'completed' });
    expect(await chargedTo(organization)).toEqual({ [limited.id]: 1, [keyId]: 11 });
  });

  it('pays within that limit for the subscription of another key that it changes', async () => {
    const organization = await customer(2);
    const { key, keyId, limited } = organization;
    const { id } = await follow(steps.service, key, { channel: '@9-videos-no-62', start: 9 });
    const change = (by: string, body: object) => onSubscriptions(steps.service, by, 'PATCH', `/${id}`, body);
    // Nothing is changed by this.
    expect((await change(limited.key, { checkMinutes: 60, state: 'active' })).status).toBe(200);
    const payer = async () => (await steps.service.query(`SELECT key_id FROM jobs WHERE id = '${id}'`))[0]?.['key_id'];
    expect(await payer()).toBe(keyId);
    expect((await change(limited.key, { checkMinutes: 30 })).status).toBe(200);
    expect(await payer()).toBe(limited.id);
    await steps.finish();
    expect((await steps.service.get(`/subscriptions/${id}`, key)).body).toMatchObject({
      ...{ state: 'paused', reason: 'plan_limit_exceeded' },
      summary: { fetched: 2, pending: 7 },
    });
    await change(key, { state: 'active' });
    await steps.finish();
    expect((await steps.service.get(`/subscriptions/${id}`, key)).body.summary).toMatchObject({ fetched: 9 });
    expect(await chargedTo(organization)).toEqual({ [limited.id]: 2, [keyId]: 7 });
  });
});

describe('accounting', () => {
  const RUNS = 6;
  /** Two slices: the first has 25 videos. */
  const VIDEOS = 30;
  let steps: SliceSteps;

  beforeAll(async () => {
    steps = await SliceSteps.start();
  });
  afterAll(() => steps.service.close());

  const operation = fc.oneof(
    { weight: 6, arbitrary: fc.constant('slice' as const) },
    { weight: 2, arbitrary: fc.constant('kill' as const) },
    { weight: 2, arbitrary: fc.constant('lose' as const) },
    { weight: 2, arbitrary: fc.constant('stop' as const) },
    { weight: 1, arbitrary: fc.constantFrom('cancel', 'resume', 'sweep', 'raise', 'pass') },
  );

  it('counts and charges each video once in any sequence of slices, kills, lost claims, cancels, resumes and quota edges', async () => {
    // Each run has a channel of its own, because what a run has fetched is free to the next one.
    let channel = 30;
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 4, maxLength: 14 }),
        fc.integer({ min: 0, max: VIDEOS + 10 }),
        async (operations, monthlyLimit) => {
          const organization = await steps.service.organization({ monthlyLimit });
          const run = await JobRun.create(steps.service, organization, `@mixed-${VIDEOS}x${channel++}`);
          for (const each of operations) {
            await apply(each, run);
            await run.verify();
          }
          await steps.service.app.get(OrganizationsService).change(organization.id, { monthlyLimit: 1_000 });
          await steps.pass(LEASES_SECONDS);
          await apply('resume', run);
          await untilCompleted(run);
          const { summary } = await run.verify();
          expect(summary).toMatchObject({ total: VIDEOS, pending: 0 });
          expect(new Set((await run.entries()).map(({ entry }) => entry.videoId)).size).toBe(VIDEOS);
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    );
  });

  async function apply(operation: string, run: JobRun): Promise<void> {
    switch (operation) {
      case 'slice':
        await steps.step();
        return;
      case 'kill':
      case 'lose': {
        const slice = await steps.claim();
        if (slice?.kind !== 'videos') {
          if (slice) await steps.run(slice);
          return;
        }
        const reading = operation === 'lose' ? steps.run(slice) : steps.read(slice);
        await steps.pass(LEASES_SECONDS);
        const other = operation === 'lose' ? await steps.claim() : undefined;
        await reading;
        if (other) await steps.run(other);
        return;
      }
      case 'stop': {
        const slice = await steps.claim();
        const stop = new AbortController();
        const running = slice && steps.run(slice, stop.signal);
        setTimeout(() => stop.abort(), 5);
        await running;
        return;
      }
      case 'cancel':
        await run.cancel().catch(() => undefined);
        return;
      case 'resume':
        await run.resume().catch(() => undefined);
        return;
      case 'sweep':
        await steps.sweep();
        return;
      case 'raise':
        await steps.service.app.get(OrganizationsService).change(run.organization.id, { monthlyLimit: VIDEOS });
        return;
      default:
        await steps.pass(3_600);
    }
  }

  async function untilCompleted(run: JobRun): Promise<void> {
    for (let round = 0; round < 20 && (await run.get()).state !== 'completed'; round++) {
      await steps.finish();
      await steps.sweep();
      await steps.pass(7 * 3_600);
    }
    expect((await run.get()).state).toBe('completed');
  }
});

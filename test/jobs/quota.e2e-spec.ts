import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { JobRun } from './job-run.js';
import { SliceSteps } from './slice-steps.js';

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
    const [first, second] = [await steps.service.organization(), await steps.service.organization({ monthlyLimit: 0 })];
    const due = await JobRun.create(steps.service, first, '@5-videos-no-8');
    const paused = await JobRun.create(steps.service, second, '@5-videos-no-9');
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

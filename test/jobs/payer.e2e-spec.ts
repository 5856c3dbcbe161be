import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { UsageReports } from '../../src/quota/usage-report.js';
import type { TestOrganization } from '../harness/service.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';
import { createJob, onJob } from './job-requests.js';
import { SliceSteps } from './slice-steps.js';

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

describe('a key with a monthly limit', () => {
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

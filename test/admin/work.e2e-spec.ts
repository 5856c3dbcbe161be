import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { SubscriptionsService } from '../../src/jobs/subscriptions.service.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-3e6f';

let service: TestService;
let acme: TestOrganization;
let other: TestOrganization;
const jobIds: string[] = [];

beforeAll(async () => {
  service = await startService({ environment: { ADMIN_TOKEN, JOB_CONCURRENCY: 0, UPSTREAM_RETRIES: 0 } });
  [acme, other] = [await service.organization(), await service.organization()];
  for (const [organization, channel] of [
    [acme, '@tidewater'] as const,
    [other, '@3-videos-no-1'] as const,
    [acme, '@harbourlight'] as const,
  ]) {
    const payer = { organizationId: organization.id, keyId: organization.keyId, requestId: 'test' };
    jobIds.push((await service.app.get(JobsService).create({ channel }, payer)).id);
    await service.app.get(SubscriptionsService).create({ channel }, payer);
  }
});
afterAll(() => service.close());

const admin = (path: string): Promise<ServiceResponse> =>
  service.request('GET', `/admin${path}`, { Authorization: `Bearer ${ADMIN_TOKEN}` });

describe('the work of an organization', () => {
  it.each([['jobs'], ['subscriptions']])('lists its %s as the organization sees them, page by page', async (name) => {
    const own = (await service.get(`/${name}`, acme.key)).body;
    expect(own[name]).toHaveLength(2);
    const path = `/organizations/${acme.id}/${name}`;
    expect((await admin(path)).body).toEqual(own);
    const first = (await admin(`${path}?limit=1`)).body;
    const second = (await admin(`${path}?limit=1&after=${first.next}`)).body;
    expect([...first[name], ...second[name], second.next]).toEqual([...own[name], null]);
    expect((await admin(`${path}?after=x`)).body.error.code).toBe('invalid_request');
    expect((await admin(`/organizations/org_none/${name}`)).status).toBe(404);
    expect((await service.request('GET', `/admin${path}`)).status).toBe(401);
    expect((await service.get(`/admin${path}`, acme.key)).status).toBe(401);
  });

  it('shows why a job waits', async () => {
    await service.query(`UPDATE jobs SET state = 'paused', reason = 'plan_changed' WHERE id = '${jobIds[1]}'`);
    expect((await admin(`/organizations/${other.id}/jobs`)).body.jobs).toMatchObject([
      { id: jobIds[1], state: 'paused', reason: 'plan_changed' },
    ]);
  });
});

describe('the egresses', () => {
  const open = { refusedKind: null, pauseSeconds: null, waiting: 0, running: 0, lastControl: null };
  const pace = (kind: string) => ({ kind, perMinute: null });

  it('are shown as they are: open, and after a refusal paused with what the control said', async () => {
    expect((await admin('/egresses')).body).toEqual({
      egresses: [
        {
          ...{ name: 'direct', resting: false },
          uses: [
            { use: 'channel', ...open, pace: [pace('list')] },
            { use: 'video', ...open, pace: [pace('player'), pace('captions')] },
          ],
        },
      ],
    });
    service.fakeYoutube.setFaults({ kind: 'bot-check' });
    const before = Date.now();
    await service.get('/videos/tw-harbor-1/transcript', acme.key);
    await service.get('/channels/@tidewater/transcripts?limit=5', acme.key);
    const [channel, video] = (await admin('/egresses')).body.egresses[0].uses;
    expect(channel).toMatchObject(open);
    expect(video).toMatchObject({ refusedKind: 'player', waiting: 0, running: 0 });
    expect(video.pauseSeconds).toBeGreaterThan(0);
    expect(video.lastControl).toMatchObject({ kind: 'player', result: 'refused' });
    expect(Date.parse(String(video.lastControl.at))).toBeGreaterThanOrEqual(before);
  });
});

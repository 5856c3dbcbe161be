import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JOB_STATES, PAUSE_REASONS } from '../../src/jobs/job.js';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';
import { type CliResult, CliSession } from './run-cli.js';
import { SubscriptionsService } from '../../src/jobs/subscriptions.service.js';

describe('the jobs of all organizations', () => {
  const ADMIN_TOKEN = 'an-admin-token-of-the-tests-7c2e';
  const TOKEN = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const NOT_FOUND = 'Job not found. No job has this ID, or it was deleted.';
  const NO_REQUEST = { languages: [], limit: null, since: null, onQuota: 'pause' } as const;
  let service: TestService;
  let session: CliSession;
  let acme: TestOrganization;
  let other: TestOrganization;
  /** Oldest first: two of one organization and one of another. No process runs them. */
  const ids: string[] = [];

  beforeAll(async () => {
    session = new CliSession();
    service = await startService({ environment: { ADMIN_TOKEN, JOB_CONCURRENCY: 0 } });
    [acme, other] = [await service.organization(), await service.organization()];
  });

  beforeEach(async () => {
    await service.query('DELETE FROM jobs');
    ids.length = 0;
    for (const [organization, channel] of [
      [acme, '@tidewater'] as const,
      [other, '@港の灯台'] as const,
      [acme, 'bench'] as const,
    ]) {
      const payer = { organizationId: organization.id, keyId: organization.keyId, requestId: 'test' };
      ids.push((await service.app.get(JobsService).create({ ...NO_REQUEST, channel }, payer)).id);
    }
  });

  afterAll(async () => {
    session.close();
    await service.close();
  });

  function admin(method: string, path: string): Promise<ServiceResponse> {
    return service.request(method, `/admin/jobs${path}`, TOKEN);
  }

  const cli = (...args: string[]): Promise<CliResult> =>
    session.run(['job', ...args], { DATABASE_URL: service.databaseUrl });

  /** The JSON document of a command that succeeds without any other output. */
  async function json(...args: string[]): Promise<unknown> {
    const { code, output, errorOutput } = await cli(...args, '--json');
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
    return JSON.parse(output);
  }

  const overdue = (id: string, seconds: number): Promise<unknown> =>
    service.query(`UPDATE jobs SET next_run_at = clock_now() - make_interval(secs => ${seconds}) WHERE id = '${id}'`);

  it('are counted by the metrics of the alerts, with the reasons of paused ones', async () => {
    await overdue(ids[0] ?? '', 900);
    await service.query(`UPDATE jobs SET state = 'paused', reason = 'upstream_blocked', stored_bytes = 5000
      WHERE id = '${ids[1]}'`);
    const samples = await scrape(service);
    expect(JOB_STATES.map((state) => sumOf(samples, 'ct_jobs', { state }))).toEqual([2, 0, 0, 1, 0, 0, 0]);
    expect(PAUSE_REASONS.map((reason) => sumOf(samples, 'ct_jobs_paused', { reason }))).toEqual([0, 1, 0, 0]);
    expect(sumOf(samples, 'ct_job_oldest_due_seconds')).toBeGreaterThanOrEqual(900);
    expect(sumOf(samples, 'ct_job_results_bytes')).toBe(5000);
  });

  it('are canceled by ID', async () => {
    const [first = '', second = '', third = ''] = ids;
    const canceled = await admin('POST', `/${first}/cancel`);
    expect(canceled).toMatchObject({ status: 200, body: { id: first, state: 'canceled' } });
    expect(await admin('POST', `/${first}/cancel`)).toMatchObject({ status: 200, body: { state: 'canceled' } });
    expect(await json('cancel', first)).toMatchObject({ id: first, state: 'canceled' });
    expect(await json('cancel', second)).toMatchObject({ id: second, state: 'canceled', organizationId: other.id });
    await service.query(`UPDATE jobs SET state = 'completed', finished_at = clock_now(), next_run_at = NULL
      WHERE id = '${third}'`);
    expect(await admin('POST', `/${third}/cancel`)).toMatchObject({
      status: 409,
      body: { error: { code: 'job_finished' } },
    });
    expect(await cli('cancel', third)).toMatchObject({ code: 1, output: '' });
  });

  it.each<[id: string]>([[`job_${'0'.repeat(22)}`], ['job_%00']])('are 404 for the unknown ID %s', async (id) => {
    expect(await admin('POST', `/${id}/cancel`)).toMatchObject({
      status: 404,
      body: { error: { code: 'job_not_found', message: NOT_FOUND } },
    });
    const { code, output, errorOutput } = await cli('cancel', id);
    expect([code, output, errorOutput]).toEqual([1, '', `error: ${NOT_FOUND}\n`]);
  });
});

describe('the work of organizations', () => {
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
});

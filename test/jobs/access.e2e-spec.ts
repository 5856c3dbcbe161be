import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { startService, type TestService } from '../harness/service.js';
import { createJob, onJob, waitForJob } from './job-requests.js';

/** Runs no jobs, so that they stay as they are created. */
let idle: TestService;
let service: TestService;

beforeAll(async () => {
  [idle, service] = await Promise.all([
    startService({ environment: { RATE_LIMIT_PER_MINUTE: 0, JOB_CONCURRENCY: 0, JOBS_PER_ORGANIZATION: 100 } }),
    startService({ environment: { RATE_LIMIT_PER_MINUTE: 30 } }),
  ]);
});
afterAll(() => Promise.all([idle.close(), service.close()]));

/** Every operation on a job: the method and the path after its ID. */
const OPERATIONS = [
  ['GET', ''],
  ['GET', '/results'],
  ['POST', '/cancel'],
  ['POST', '/resume'],
  ['DELETE', ''],
] as const;

describe('an operation on a job', () => {
  it.each(OPERATIONS)(
    '%s /jobs/:id%s is 404 for the jobs of others, deleted ones and texts that are no ID',
    async (method, rest) => {
      const [owner, other] = [await idle.organization(), await idle.organization()];
      const id = await createJob(idle, owner.key, { channel: '@tidewater' });
      const deleted = await createJob(idle, other.key, { channel: '@tidewater' });
      expect((await onJob(idle, other.key, 'DELETE', deleted)).status).toBe(204);
      for (const wrong of [
        id,
        deleted,
        'job_',
        'job_0000000000000000000000',
        `${id}0`,
        '%00',
        'x'.repeat(500),
        '%F0%9F%9A%A2',
      ]) {
        const response = await onJob(idle, other.key, method, `${wrong}${rest}`);
        expect([wrong, response.status, response.body.error.code]).toEqual([wrong, 404, 'job_not_found']);
      }
      expect((await idle.get(`/jobs/${id}`, owner.key)).body.state).toBe('queued');
    },
  );

  it.each(OPERATIONS)('%s /jobs/:id%s needs a key, and no parameters', async (method, rest) => {
    const { key } = await idle.organization();
    const id = await createJob(idle, key, { channel: '@tidewater' });
    const anonymous = await idle.request(method, `/jobs/${id}${rest}`);
    expect([anonymous.status, anonymous.body.error.code]).toEqual([401, 'unauthorized']);
    const response = await onJob(idle, key, method, `${id}${rest}?page=1`);
    expect([response.status, response.body.error.details]).toEqual([400, [expect.objectContaining({ field: 'page' })]]);
    expect((await idle.get(`/jobs/${id}`, key)).body.state).toBe('queued');
  });

  it.each([
    ['PUT', '/jobs', 'GET, POST, HEAD'],
    ['POST', '/jobs/job_x', 'GET, DELETE, HEAD'],
    ['GET', '/jobs/job_x/cancel', 'POST'],
    ['HEAD', '/jobs/job_x/results', 'GET'],
  ])('%s %s is 405 with Allow', async (method, path, allow) => {
    const response = await idle.request(method, path);
    expect([response.status, response.headers.allow]).toEqual([405, allow]);
  });

  it('works on the free plan, so that a customer who changes the plan reaches its results', async () => {
    const { id: organization, key } = await service.organization();
    const [completed, empty] = [
      await createJob(service, key, { channel: '@tidewater', limit: 2 }),
      await createJob(service, key, { channel: '@emptyslip' }),
    ];
    await waitForJob(service, key, completed);
    await service.app.get(OrganizationsService).change(organization, { plan: 'free' });
    expect((await service.get('/jobs', key)).body.jobs).toHaveLength(2);
    expect((await service.get(`/jobs/${completed}/results`, key)).body.results).toHaveLength(2);
    expect((await onJob(service, key, 'POST', `${completed}/resume`)).status).toBe(409);
    expect((await onJob(service, key, 'DELETE', empty)).status).toBe(204);
  });

  it('counts against a rate limit of its own', async () => {
    const { key } = await service.organization();
    const statuses = new Set<number>();
    for (let calls = 0; calls < 30; calls += 1) statuses.add((await service.get('/jobs', key)).status);
    expect([...statuses]).toEqual([200]);
    const refused = await service.get('/jobs/job_0000000000000000000000', key);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect((await service.get('/usage', key)).headers['x-ratelimit-remaining']).toBe('29');
  });
});

describe('the list of jobs', () => {
  it('has the jobs of the organization, newest first, in pages that lose and repeat none', async () => {
    const [{ key }, other] = [await idle.organization(), await idle.organization()];
    const created: string[] = [];
    for (let job = 0; job < 7; job += 1) created.push(await createJob(idle, key, { channel: '@tidewater' }));
    const foreign = await createJob(idle, other.key, { channel: '@tidewater' });
    await createJob(idle, other.key, { channel: '@tidewater' });
    const listed: string[] = [];
    let after = '';
    do {
      const { jobs, next } = (await idle.get(`/jobs?limit=3${after}`, key)).body;
      listed.push(...(jobs as { id: string }[]).map(({ id }) => id));
      after = next === null ? '' : `&after=${next}`;
      // A job that is created meanwhile is above the pages.
      if (next !== null) await createJob(idle, key, { channel: '@tidewater' });
    } while (after !== '');
    expect(listed).toEqual(created.reverse());
    const { next } = (await idle.get('/jobs?limit=1', other.key)).body;
    const behind = (await idle.get(`/jobs?after=${next}`, key)).body.jobs as { id: string }[];
    expect(behind.map(({ id }) => id)).not.toContain(foreign);
    expect((await idle.get(`/jobs/${created[0]}`, key)).body).toEqual(
      (await idle.get('/jobs?limit=500', key)).body.jobs.find(({ id }: { id: string }) => id === created[0]),
    );
  });

  it.each([
    ['limit=0', 'limit'],
    ['after=5', 'after'],
    ['after=99999999999999.job_0000000000000000000000', 'after'],
    ['page=2', 'page'],
  ])('with %s is refused', async (query, field) => {
    const { key } = await idle.organization();
    const response = await idle.get(`/jobs?${query}`, key);
    expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
    expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(/./) }]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKey } from '../../src/organizations/api-key.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { startService, type TestService } from '../harness/service.js';
import { JobRun } from './job-run.js';
import { createJob, onJob, postJob, waitForJob } from './job-requests.js';

describe('creating a job', () => {
  /** Runs no jobs, so that they stay as they are created. */
  let idle: TestService;

  beforeAll(async () => {
    idle = await startService({
      environment: {
        RATE_LIMIT_PER_MINUTE: 0,
        CALLS_PER_KEY: 0,
        CALLS_PER_ORGANIZATION: 0,
        JOB_CONCURRENCY: 0,
        JOBS_PER_ORGANIZATION: 2,
      },
    });
  });
  afterAll(() => idle.close());

  describe('a new job', () => {
    it('is accepted with its location, before anything was read from the platform', async () => {
      const { key } = await idle.organization();
      const request = { channel: '@harbourlight', languages: ['EN', 'de'], limit: 20_000, since: 'hl-dinghy__' };
      const response = await postJob(idle, key, { ...request, onQuota: 'fail' });
      expect(response.status).toBe(202);
      expect(response.headers.location).toBe(`/jobs/${response.body.id}`);
      expect(response.body).toEqual({
        id: expect.stringMatching(/^job_[0-9A-Za-z]{22}$/),
        state: 'queued',
        reason: null,
        channel: null,
        playlist: null,
        request: {
          ...{ ...request, playlist: null, videos: null, languages: ['en', 'de'], onQuota: 'fail', labels: {} },
          keep: false,
          ...{ match: 'all', tracks: 'any', kinds: [], publishedAfter: null, include: [], chunkSeconds: null },
        },
        labels: {},
        keep: 'off',
        summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
        hidden: 0,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        startedAt: null,
        finishedAt: null,
        expiresAt: null,
        checkAgainSeconds: expect.any(Number),
      });
      expect(response.text).toMatch(/"channel":.*"playlist":.*"request":/);
      expect(idle.fakeYoutube.requests.total).toBe(0);
      expect((await idle.get(response.headers.location ?? '', key)).body).toEqual(response.body);
      expect(idle.logs.join('')).toContain(`"status":202`);
      expect(idle.logs.join('')).toContain(`"jobId":"${response.body.id}"`);
    });

    it('requires the Pro plan', async () => {
      const { key } = await idle.organization({ plan: 'free' });
      const response = await postJob(idle, key, { channel: '@tidewater' });
      expect([response.status, response.body.error]).toMatchObject([
        403,
        { code: 'feature_not_in_plan', feature: 'channel_archives', plan: 'free', requiredPlan: 'pro' },
      ]);
    });

    it('is refused with Retry-After while the organization has too many unfinished ones', async () => {
      const { key } = await idle.organization();
      const first = await createJob(idle, key, { channel: '@tidewater' });
      await createJob(idle, key, { channel: '@tidewater' });
      const refused = await postJob(idle, key, { channel: '@tidewater' });
      expect([refused.status, refused.body.error]).toMatchObject([429, { code: 'too_many_jobs', retryable: true }]);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect((await onJob(idle, key, 'POST', `${first}/cancel`)).status).toBe(200);
      expect((await postJob(idle, key, { channel: '@tidewater' })).status).toBe(202);
      const resumed = await onJob(idle, key, 'POST', `${first}/resume`);
      expect([resumed.status, resumed.body.error.code]).toEqual([429, 'too_many_jobs']);
    });

    it('is refused while the organization stores too many results, until some are deleted', async () => {
      const { key } = await idle.organization();
      const id = await createJob(idle, key, { channel: '@tidewater' });
      await idle.query(`UPDATE jobs SET stored_bytes = 10000::bigint * 1024 * 1024 WHERE id = '${id}'`);
      await onJob(idle, key, 'POST', `${id}/cancel`);
      for (const refused of [
        await postJob(idle, key, { channel: '@tidewater' }),
        await onJob(idle, key, 'POST', `${id}/resume`),
      ]) {
        expect([refused.status, refused.body.error]).toMatchObject([429, { code: 'too_many_jobs', retryable: true }]);
        expect(refused.body.error.message).toMatch(/10000 MB.*Delete/);
      }
      expect((await onJob(idle, key, 'DELETE', id)).status).toBe(204);
      expect((await postJob(idle, key, { channel: '@tidewater' })).status).toBe(202);
    });

    it('is refused while the organization has 1,000 stored jobs', async () => {
      const { key } = await idle.organization();
      const id = await createJob(idle, key, { channel: '@tidewater' });
      await onJob(idle, key, 'POST', `${id}/cancel`);
      await idle.query(`INSERT INTO jobs SELECT copy.* FROM jobs job, generate_series(1, 999) number,
      jsonb_populate_record(job, jsonb_build_object('id', 'job_copy_' || number)) copy WHERE job.id = '${id}'`);
      const refused = await postJob(idle, key, { channel: '@tidewater' });
      expect([refused.status, refused.body.error.code]).toEqual([429, 'too_many_jobs']);
      expect((await onJob(idle, key, 'DELETE', id)).status).toBe(204);
      expect((await postJob(idle, key, { channel: '@tidewater' })).status).toBe(202);
    });

    it('is refused for an organization that was deleted after its key was checked', async () => {
      const organization = await idle.organization();
      await idle.app.get(OrganizationsService).delete(organization.id);
      await expect(JobRun.create(idle, organization, '@tidewater')).rejects.toMatchObject({ code: 'invalid_api_key' });
    });
  });

  describe('an Idempotency-Key', () => {
    it('makes one job of requests that arrive at once, and the same one later', async () => {
      const { key } = await idle.organization();
      const send = () =>
        postJob(idle, key, { channel: '@tidewater', limit: 3 }, { 'Idempotency-Key': 'sync 2026-11-22 #1' });
      const responses = await Promise.all(Array.from({ length: 20 }, send));
      expect(responses.map(({ status }) => status)).toEqual(Array<number>(20).fill(202));
      const ids = new Set([...responses, await send()].map(({ body }) => body.id as string));
      expect(ids.size).toBe(1);
      expect((await idle.get('/jobs', key)).body.jobs).toHaveLength(1);
    });

    it('with another body is a conflict that creates nothing', async () => {
      const { key } = await idle.organization();
      const headers = { 'Idempotency-Key': 'x'.repeat(255) };
      expect((await postJob(idle, key, { channel: '@tidewater' }, headers)).status).toBe(202);
      for (const body of [{ channel: '@Tidewater' }, { channel: '@tidewater', limit: 1 }]) {
        const refused = await postJob(idle, key, body, headers);
        expect([refused.status, refused.body.error]).toMatchObject([
          409,
          { code: 'idempotency_conflict', retryable: false },
        ]);
      }
      expect((await idle.get('/jobs', key)).body.jobs).toHaveLength(1);
    });

    it('belongs to its organization', async () => {
      const [one, other] = [await idle.organization(), await idle.organization()];
      const headers = { 'Idempotency-Key': '1' };
      const first = await postJob(idle, one.key, { channel: '@tidewater' }, headers);
      const second = await postJob(idle, other.key, { channel: '@harbourlight' }, headers);
      expect([first.status, second.status]).toEqual([202, 202]);
      expect(second.body.id).not.toBe(first.body.id);
    });

    it.each<[what: string, value: string | string[]]>([
      ['an empty value', ''],
      ['256 characters', 'x'.repeat(256)],
      ['several values', ['a', 'a']],
      ['an API key', generateKey()],
    ])('with %s is refused', async (_what, value) => {
      const { key } = await idle.organization();
      const response = await postJob(idle, key, { channel: '@tidewater' }, { 'Idempotency-Key': value });
      expect([response.status, response.body.error]).toMatchObject([
        400,
        { code: 'invalid_request', details: [{ field: 'Idempotency-Key' }] },
      ]);
      expect((await idle.get('/jobs', key)).body.jobs).toEqual([]);
    });
  });

  describe('a request for a job', () => {
    const channel = '@tidewater';
    it.each<[what: string, body: unknown, field: string]>([
      ['no channel', {}, 'channel'],
      ['an API key in the channel', { channel: `https://www.youtube.com/@tidewater?key=${generateKey()}` }, 'channel'],
      ['a malformed language', { channel, languages: ['en', 'd'] }, 'languages'],
      ['the limit 0', { channel, limit: 0 }, 'limit'],
      ['an unknown onQuota', { channel, onQuota: 'wait' }, 'onQuota'],
      ['an unknown field', { channel, page: 2 }, 'page'],
    ])('with %s is refused with one message about the field', async (_what, body, field) => {
      const { key } = await idle.organization();
      const response = await postJob(idle, key, body);
      expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
      expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(/./) }]);
      expect((await idle.get('/jobs', key)).body.jobs).toEqual([]);
    });

    it.each([
      '',
      'https://example.com/@tidewater',
      'x'.repeat(3_000),
      'https://www.youtube.com/@tidewater?\0',
      'https://www.youtube.com/@tidewater#\udfff',
    ])('for %j, which refers to no channel, is 404 without a request to the platform', async (reference) => {
      const { key } = await idle.organization();
      const response = await postJob(idle, key, { channel: reference });
      expect([response.status, response.body.error.code]).toEqual([404, 'channel_not_found']);
      expect((await idle.get('/jobs', key)).body.jobs).toEqual([]);
      expect(idle.fakeYoutube.requests.total).toBe(0);
    });
  });
});

describe('access to jobs', () => {
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
      expect([response.status, response.body.error.details]).toEqual([
        400,
        [expect.objectContaining({ field: 'page' })],
      ]);
      expect((await idle.get(`/jobs/${id}`, key)).body.state).toBe('queued');
    });

    it.each([
      ['PUT', '/jobs', 'GET, POST, HEAD'],
      ['POST', '/jobs/job_x', 'GET, DELETE, PATCH, HEAD'],
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
});

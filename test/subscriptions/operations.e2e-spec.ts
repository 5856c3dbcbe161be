import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { DatabaseClock } from '../database/database-clock.js';
import { startService, type TestService } from '../harness/service.js';
import { createJob, onJob } from '../jobs/job-requests.js';
import { follow, onSubscriptions } from './subscription-requests.js';

/** Checks nothing, so that subscriptions stay as they are changed. */
let idle: TestService;
let limited: TestService;

beforeAll(async () => {
  [idle, limited] = await Promise.all([
    startService({ environment: { RATE_LIMIT_PER_MINUTE: 0, JOB_CONCURRENCY: 0 } }),
    startService({ environment: { RATE_LIMIT_PER_MINUTE: 10, JOB_CONCURRENCY: 0 } }),
  ]);
});
afterAll(() => Promise.all([idle.close(), limited.close()]));

const channel = '@tidewater';
const UNKNOWN = 'sub_0000000000000000000000';

/** Every operation on a subscription: the method, the path after its ID, and its body. */
const OPERATIONS: [method: string, rest: string, body: object | undefined][] = [
  ['GET', '', undefined],
  ['GET', '/results', undefined],
  ['POST', '/check', undefined],
  ['PATCH', '', { checkMinutes: 30 }],
  ['DELETE', '', undefined],
];

describe('an operation on a subscription', () => {
  it.each(OPERATIONS)(
    '%s /subscriptions/:id%s is 404 for those of others, deleted ones, jobs and texts that are no ID',
    async (method, rest, body) => {
      const [owner, other] = [await idle.organization(), await idle.organization()];
      const { id } = await follow(idle, owner.key, { channel });
      const deleted = await follow(idle, other.key, { channel });
      expect((await onSubscriptions(idle, other.key, 'DELETE', `/${deleted.id}`)).status).toBe(204);
      const job = await createJob(idle, other.key, { channel });
      for (const wrong of [id, deleted.id, job, 'sub_', UNKNOWN, `${id}0`, '%00', 'x'.repeat(500)]) {
        const response = await onSubscriptions(idle, other.key, method, `/${wrong}${rest}`, body);
        expect([wrong, response.status, response.body.error]).toMatchObject([
          wrong,
          404,
          { code: 'subscription_not_found', retryable: false, message: expect.stringContaining('no subscription') },
        ]);
      }
      expect((await idle.get(`/subscriptions/${id}`, owner.key)).body).toMatchObject({
        state: 'active',
        request: { checkMinutes: 60 },
      });
    },
  );

  it.each(OPERATIONS)('%s /subscriptions/:id%s needs a key, and no parameters', async (method, rest, body) => {
    const { key } = await idle.organization();
    const { id } = await follow(idle, key, { channel });
    const anonymous = await idle.request(method, `/subscriptions/${id}${rest}`);
    expect([anonymous.status, anonymous.body.error.code]).toEqual([401, 'unauthorized']);
    const response = await onSubscriptions(idle, key, method, `/${id}${rest}?page=1`, body);
    expect([response.status, response.body.error.details]).toEqual([400, [expect.objectContaining({ field: 'page' })]]);
  });

  it.each([
    ['PUT', '', 'GET, POST, HEAD'],
    ['POST', `/${UNKNOWN}`, 'GET, DELETE, PATCH, HEAD'],
    ['GET', `/${UNKNOWN}/check`, 'POST'],
    ['HEAD', `/${UNKNOWN}/results`, 'GET'],
  ])('%s /subscriptions%s is 405 with Allow', async (method, path, allow) => {
    const response = await idle.request(method, `/subscriptions${path}`);
    expect([response.status, response.headers.allow]).toEqual([405, allow]);
  });

  it('works on the free plan', async () => {
    const { id: organization, key } = await idle.organization();
    const { id } = await follow(idle, key, { channel });
    await idle.app.get(OrganizationsService).change(organization, { plan: 'free' });
    for (const [method, rest, body] of OPERATIONS) {
      const { status } = await onSubscriptions(idle, key, method, `/${id}${rest}`, body);
      expect([method, rest, status]).toEqual([method, rest, expect.any(Number)]);
      expect(status).toBeLessThan(300);
    }
  });

  it('counts against a rate limit of its own', async () => {
    const { key } = await limited.organization();
    const statuses = new Set<number>();
    for (let calls = 0; calls < 10; calls += 1) statuses.add((await limited.get('/subscriptions', key)).status);
    expect([...statuses]).toEqual([200]);
    const refused = await limited.get(`/subscriptions/${UNKNOWN}`, key);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect((await limited.get('/jobs', key)).status).toBe(200);
    expect((await limited.get('/usage', key)).headers['x-ratelimit-remaining']).toBe('9');
  });

  it('is none on a job, and those on jobs are none on a subscription', async () => {
    const { key } = await idle.organization();
    const { id } = await follow(idle, key, { channel });
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/results'],
      ['POST', '/cancel'],
      ['POST', '/resume'],
      ['DELETE', ''],
    ] as const) {
      const response = await onJob(idle, key, method, `${id}${rest}`);
      expect([response.status, response.body.error.code]).toEqual([404, 'job_not_found']);
    }
    expect((await idle.get(`/subscriptions/${id}`, key)).body.state).toBe('active');
  });
});

describe('a change of a subscription', () => {
  it('pauses it, sets its interval, and lets it go on with a check at once', async () => {
    const { key } = await idle.organization();
    const { id } = await follow(idle, key, { channel: '@3-videos-no-1' });
    const change = (body: object) => onSubscriptions(idle, key, 'PATCH', `/${id}`, body);
    const paused = await change({ state: 'paused' });
    expect([paused.status, paused.body]).toMatchObject([
      200,
      { id, state: 'paused', reason: 'paused_by_caller', nextCheckAt: null },
    ]);
    expect((await change({ checkMinutes: 1440 })).body).toMatchObject({
      state: 'paused',
      request: { checkMinutes: 1440 },
    });
    const active = await change({ state: 'active', checkMinutes: 15 });
    expect(active.body).toMatchObject({ state: 'active', reason: null, request: { checkMinutes: 15 } });
    expect(Date.parse(active.body.nextCheckAt as string)).toBeGreaterThanOrEqual(
      Date.parse(active.body.createdAt as string),
    );
    expect((await idle.get(`/subscriptions/${id}`, key)).body).toEqual(active.body);
  });

  it.each<[what: string, body: unknown, field: string, message: RegExp]>([
    ['nothing', {}, 'body', /at least one field/],
    ['an unknown state', { state: 'deleted' }, 'state', /active or paused/],
    ['a reason as its state', { state: 'paused_by_caller' }, 'state', /active or paused/],
    ['checkMinutes that are too short', { checkMinutes: 1 }, 'checkMinutes', /15 to 1440/],
    ['null', { checkMinutes: null }, 'checkMinutes', /15 to 1440/],
    ['another field', { start: 5 }, 'start', /Its parameters: state, checkMinutes/],
  ])('to %s is refused, and changes nothing', async (_what, body, field, message) => {
    const { key } = await idle.organization();
    const created = await follow(idle, key, { channel });
    const response = await onSubscriptions(idle, key, 'PATCH', `/${created.id}`, body);
    expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
    expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(message) }]);
    expect((await idle.get(`/subscriptions/${created.id}`, key)).body).toEqual(created);
  });
});

describe('a check that is asked for', () => {
  it('is accepted, at most every 10 seconds, and not while the caller has paused the subscription', async () => {
    const clock = new DatabaseClock((statement) => idle.query(statement));
    const { key } = await idle.organization();
    const { id } = await follow(idle, key, { channel });
    const check = () => onSubscriptions(idle, key, 'POST', `/${id}/check`);
    const accepted = await check();
    expect([accepted.status, accepted.body]).toMatchObject([202, { id, state: 'active' }]);
    const refused = await check();
    expect([refused.status, refused.body.error]).toMatchObject([
      429,
      { code: 'rate_limited', retryable: true, message: expect.stringMatching(/every 10 seconds.* Retry after \d+ s/) },
    ]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(10);
    await clock.move(11);
    expect((await check()).status).toBe(202);
    await onSubscriptions(idle, key, 'PATCH', `/${id}`, { state: 'paused' });
    const paused = await check();
    expect([paused.status, paused.body.error]).toMatchObject([
      409,
      { code: 'conflict', retryable: false, message: expect.stringContaining('PATCH /subscriptions/{id}') },
    ]);
    await clock.reset();
  });
});

describe('a subscription that is paused and goes on again and again', () => {
  it('is checked at most every 10 seconds, also by requests', async () => {
    const clock = new DatabaseClock((statement) => idle.query(statement));
    const { key } = await idle.organization();
    const { id, createdAt } = await follow(idle, key, { channel: '@3-videos-no-2' });
    await clock.stop();
    // So that its check of each hour is not due meanwhile.
    const [source] =
      await idle.query(`SELECT extract(epoch FROM source_tick(source_id, 3600, clock_now()) - clock_now())
      AS seconds FROM jobs WHERE id = '${id}'`);
    await clock.move(Number(source?.['seconds']) + 1);
    const seconds = (at: unknown) => Math.floor((Date.parse(String(at)) - Date.parse(createdAt)) / 1_000);
    const goOn = async () => {
      // As when the last check was made.
      await idle.query(`UPDATE sources SET next_check_at = clock_now() + interval '1 hour'`);
      await onSubscriptions(idle, key, 'PATCH', `/${id}`, { state: 'paused' });
      const { body } = await onSubscriptions(idle, key, 'PATCH', `/${id}`, { state: 'active' });
      return seconds(body.nextCheckAt);
    };
    const first = await goOn();
    for (let times = 0; times < 3; times += 1) expect(await goOn()).toBe(first + 10);
    const refused = await onSubscriptions(idle, key, 'POST', `/${id}/check`);
    expect([refused.status, Number(refused.headers['retry-after']) > 10]).toEqual([429, true]);
    await clock.move(11);
    expect(await goOn()).toBe(first + 20);
    await clock.move(30);
    expect(await goOn()).toBeGreaterThanOrEqual(first + 41);
    await clock.reset();
  });
});

describe('the list of subscriptions', () => {
  it('has those of the organization, newest first, in pages that lose and repeat none, and no jobs', async () => {
    const [{ key }, other] = [await idle.organization(), await idle.organization()];
    const created: string[] = [];
    for (let count = 0; count < 5; count += 1) created.push((await follow(idle, key, { channel })).id);
    await createJob(idle, key, { channel });
    await follow(idle, other.key, { channel });
    const listed: string[] = [];
    let after = '';
    do {
      const { subscriptions, next } = (await idle.get(`/subscriptions?limit=2${after}`, key)).body;
      listed.push(...(subscriptions as { id: string }[]).map(({ id }) => id));
      after = next === null ? '' : `&after=${next}`;
    } while (after !== '');
    expect(listed).toEqual(created.reverse());
    expect((await idle.get('/jobs', key)).body.jobs).toHaveLength(1);
  });

  it.each([
    ['limit=0', 'limit'],
    ['after=5', 'after'],
    ['after=1732550000000.job_0000000000000000000000', 'after'],
    ['page=2', 'page'],
  ])('with %s is refused', async (query, field) => {
    const { key } = await idle.organization();
    const response = await idle.get(`/subscriptions?${query}`, key);
    expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
    expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(/./) }]);
  });
});

describe('the results of a subscription without any', () => {
  it('have a cursor to come back with', async () => {
    const { key } = await idle.organization();
    const created = await follow(idle, key, { channel });
    for (const query of ['', '?after=0']) {
      const { status, body } = await idle.get(`/subscriptions/${created.id}/results${query}`, key);
      expect([status, body]).toEqual([200, { results: [], next: '0', subscription: created }]);
    }
    const headers = { Authorization: `Bearer ${key}`, Accept: 'application/x-ndjson' };
    const { text } = await idle.request('GET', `/subscriptions/${created.id}/results`, headers);
    expect(JSON.parse(text)).toEqual({ type: 'summary', summary: created.summary, next: '0', subscription: created });
  });

  it.each(['after=x', 'after=-1', 'after=9999999999999999', 'limit=0', 'after='])(
    'with %s are refused',
    async (query) => {
      const { key } = await idle.organization();
      const { id } = await follow(idle, key, { channel });
      const response = await idle.get(`/subscriptions/${id}/results?${query}`, key);
      expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
    },
  );
});

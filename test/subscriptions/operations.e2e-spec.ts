import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKey } from '../../src/organizations/api-key.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { SubscriptionsService } from '../../src/jobs/subscriptions.service.js';
import { startService, type TestService } from '../harness/service.js';
import { postJob, createJob, onJob } from '../jobs/job-requests.js';
import { follow, onSubscriptions } from './subscription-requests.js';
import { DatabaseClock } from '../database/database-clock.js';

describe('creating a subscription', () => {
  /** Checks nothing, so that subscriptions stay as they are created. */
  let idle: TestService;

  beforeAll(async () => {
    idle = await startService({
      environment: {
        RATE_LIMIT_PER_MINUTE: 0,
        CALLS_PER_KEY: 0,
        CALLS_PER_ORGANIZATION: 0,
        JOB_CONCURRENCY: 0,
        SUBSCRIPTIONS_PER_ORGANIZATION: 2,
      },
    });
  });
  afterAll(() => idle.close());

  const post = (key: string, body: unknown, headers: Record<string, string | string[]> = {}) =>
    onSubscriptions(idle, key, 'POST', '', body, headers);

  describe('a new subscription', () => {
    it('is created with its location and its channel, before its list was read', async () => {
      const { key } = await idle.organization();
      const request = {
        channel: '@harbourlight',
        languages: ['EN', 'de', '*'],
        match: 'first',
        tracks: 'any',
        kinds: 'video,short',
        include: ['chapters'],
        chunkSeconds: 60,
        checkMinutes: 15,
        start: 5,
        labels: { user: '42' },
      };
      const response = await post(key, request);
      expect(response.status).toBe(201);
      expect(response.headers.location).toBe(`/subscriptions/${response.body.id}`);
      expect(response.body).toEqual({
        id: expect.stringMatching(/^sub_[0-9A-Za-z]{22}$/),
        state: 'active',
        reason: null,
        channel: { id: expect.stringMatching(/^UC/), name: 'Harbour Light Workshop', handle: '@harbourlight' },
        playlist: null,
        request: {
          ...request,
          playlist: null,
          languages: ['en', 'de', '*'],
          kinds: ['video', 'short'],
          labels: { user: '42' },
          keep: false,
        },
        ...{ labels: { user: '42' }, keep: 'off', startFound: null },
        summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        checkedAt: null,
        nextCheckAt: response.body.createdAt,
      });
      expect(response.text).toMatch(/"channel":.*"request":/);
      expect((await idle.get(response.headers.location ?? '', key)).body).toEqual(response.body);
      expect(idle.logs.join('')).toContain(`"subscriptionId":"${response.body.id}"`);
      expect((await idle.get('/jobs', key)).body.jobs).toEqual([]);
    });

    it('has every field of the request, also those that were not given', async () => {
      const { key } = await idle.organization();
      expect((await follow(idle, key, { channel: '@tidewater' })).request).toEqual({
        channel: '@tidewater',
        playlist: null,
        ...{ languages: [], match: 'all', tracks: 'any', kinds: [], include: [], chunkSeconds: null },
        ...{ checkMinutes: 60, start: 'now', labels: {}, keep: false },
      });
    });

    it.each([['now'], [1], [100], ['hl-dinghy__']])('can start with %j', async (start) => {
      const { key } = await idle.organization();
      expect((await follow(idle, key, { channel: '@tidewater', start })).request.start).toBe(start);
    });

    it('requires the Pro plan', async () => {
      const { key } = await idle.organization({ plan: 'free' });
      const response = await post(key, { channel: '@tidewater' });
      expect([response.status, response.body.error]).toMatchObject([
        403,
        { code: 'feature_not_in_plan', feature: 'channel_subscriptions', plan: 'free', requiredPlan: 'pro' },
      ]);
    });

    it('is refused with Retry-After when the organization has too many, paused ones included', async () => {
      const { key } = await idle.organization();
      const { id } = await follow(idle, key, { channel: '@tidewater' });
      await follow(idle, key, { channel: '@tidewater' });
      await onSubscriptions(idle, key, 'PATCH', `/${id}`, { state: 'paused' });
      const refused = await post(key, { channel: '@tidewater' });
      expect([refused.status, refused.body.error]).toMatchObject([
        429,
        {
          code: 'too_many_subscriptions',
          retryable: true,
          message:
            'Your organization has reached the limit of 2 subscriptions, paused ones included. Delete one first.',
        },
      ]);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect((await postJob(idle, key, { channel: '@tidewater' })).status).toBe(202);
      expect((await onSubscriptions(idle, key, 'DELETE', `/${id}`)).status).toBe(204);
      expect((await post(key, { channel: '@tidewater' })).status).toBe(201);
    });

    it('is refused while the organization stores too many results', async () => {
      const { key } = await idle.organization();
      const { id } = await follow(idle, key, { channel: '@tidewater' });
      await idle.query(`UPDATE jobs SET stored_bytes = 10000::bigint * 1024 * 1024 WHERE id = '${id}'`);
      const refused = await post(key, { channel: '@tidewater' });
      expect([refused.status, refused.body.error.code]).toEqual([429, 'too_many_jobs']);
      expect(refused.body.error.message).toMatch(/10000 MB of results.* or subscriptions, /);
      expect((await onSubscriptions(idle, key, 'DELETE', `/${id}`)).status).toBe(204);
      expect((await post(key, { channel: '@tidewater' })).status).toBe(201);
    });

    it('is refused for an organization that was deleted after its key was checked', async () => {
      const { id: organizationId, keyId } = await idle.organization();
      await idle.app.get(OrganizationsService).delete(organizationId);
      const payer = { organizationId, keyId, requestId: 'test' };
      const created = idle.app.get(SubscriptionsService).create({ channel: '@tidewater' }, payer);
      await expect(created).rejects.toMatchObject({ code: 'invalid_api_key' });
    });
  });

  describe('an Idempotency-Key', () => {
    it('makes one subscription of requests that arrive at once, and the same one later, also when it was changed', async () => {
      const { key } = await idle.organization();
      const send = () => post(key, { channel: '@tidewater', start: 3 }, { 'Idempotency-Key': 'follow #1' });
      const responses = await Promise.all(Array.from({ length: 20 }, send));
      expect(responses.map(({ status }) => status)).toEqual(Array<number>(20).fill(201));
      const ids = new Set(responses.map(({ body }) => body.id as string));
      expect(ids.size).toBe(1);
      const [id = ''] = ids;
      await onSubscriptions(idle, key, 'PATCH', `/${id}`, { checkMinutes: 30 });
      expect((await send()).body).toMatchObject({ id, request: { checkMinutes: 30 } });
      expect((await idle.get('/subscriptions', key)).body.subscriptions).toHaveLength(1);
    });

    it('with another body, or of a job, is a conflict that creates nothing', async () => {
      const { key } = await idle.organization();
      const [one, other] = [{ 'Idempotency-Key': '1' }, { 'Idempotency-Key': '2' }];
      expect((await post(key, { channel: '@tidewater' }, one)).status).toBe(201);
      expect((await postJob(idle, key, { channel: '@tidewater' }, other)).status).toBe(202);
      for (const refused of [
        await post(key, { channel: '@tidewater', checkMinutes: 61 }, one),
        await post(key, { channel: '@tidewater' }, other),
        await postJob(idle, key, { channel: '@tidewater' }, one),
      ]) {
        expect([refused.status, refused.body.error]).toMatchObject([
          409,
          { code: 'idempotency_conflict', retryable: false },
        ]);
      }
      expect((await idle.get('/subscriptions', key)).body.subscriptions).toHaveLength(1);
    });

    it('of a deleted subscription creates another one', async () => {
      const { key } = await idle.organization();
      const headers = { 'Idempotency-Key': '1' };
      const { body } = await post(key, { channel: '@tidewater' }, headers);
      await onSubscriptions(idle, key, 'DELETE', `/${body.id}`);
      const again = await post(key, { channel: '@tidewater' }, headers);
      expect([again.status, again.body.id === body.id]).toEqual([201, false]);
    });

    it('that is no such text is refused', async () => {
      const { key } = await idle.organization();
      const response = await post(key, { channel: '@tidewater' }, { 'Idempotency-Key': '' });
      expect([response.status, response.body.error.details]).toMatchObject([400, [{ field: 'Idempotency-Key' }]]);
    });
  });
  const START_MESSAGE = /"now".* integer from 1 to 100.* ID of a video/;

  describe('a request for a subscription', () => {
    const channel = '@tidewater';
    it.each<[what: string, body: unknown, field: string, message: RegExp]>([
      ['neither a channel nor a playlist', {}, 'channel', /channel and playlist is required/],
      ['a channel and a playlist', { channel, playlist: 'PLharbourlight-boats' }, 'playlist', /one of them/],
      [
        'an API key in the channel',
        { channel: `https://youtube.com/@tide?key=${generateKey()}` },
        'channel',
        /API key/,
      ],
      ['a malformed language', { channel, languages: ['en', 'original'] }, 'languages', /\*/],
      ['an unknown match', { channel, match: 'best' }, 'match', /all or first/],
      ['an unknown kind', { channel, kinds: ['clip'] }, 'kinds', /video, short, live, upcoming/],
      ['an unknown include', { channel, include: 'likes' }, 'include', /description, chapters, tags/],
      ['chunkSeconds that are too short', { channel, chunkSeconds: 1 }, 'chunkSeconds', /15 to 600/],
      ['checkMinutes that are too short', { channel, checkMinutes: 14 }, 'checkMinutes', /integer from 15 to 1440/],
      ['checkMinutes that are too long', { channel, checkMinutes: 1441 }, 'checkMinutes', /integer from 15 to 1440/],
      ['a part of a minute', { channel, checkMinutes: 15.5 }, 'checkMinutes', /integer from 15 to 1440/],
      ['checkMinutes as text', { channel, checkMinutes: '60' }, 'checkMinutes', /integer from 15 to 1440/],
      ['the start 0', { channel, start: 0 }, 'start', START_MESSAGE],
      ['the start 101', { channel, start: 101 }, 'start', START_MESSAGE],
      ['a number as text as its start', { channel, start: '5' }, 'start', START_MESSAGE],
      ['a URL as its start', { channel, start: 'https://youtu.be/hl-dinghy__' }, 'start', START_MESSAGE],
      ['null as its start', { channel, start: null }, 'start', START_MESSAGE],
      ['a list as its start', { channel, start: ['now'] }, 'start', START_MESSAGE],
      [
        'the interval by another name',
        { channel, interval: 60 },
        'interval',
        /Its parameters: channel, .*checkMinutes/,
      ],
      ['a misspelled field', { channel, checkMinute: 60 }, 'checkMinute', /Did you mean checkMinutes\?/],
      ['the since of jobs', { channel, since: 'hl-dinghy__' }, 'since', /start/],
    ])('with %s is refused with one message about the field', async (_what, body, field, message) => {
      const { key } = await idle.organization();
      const response = await post(key, body);
      expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
      expect(response.body.error.details).toEqual([{ field, message: expect.stringMatching(message) }]);
      expect((await idle.get('/subscriptions', key)).body.subscriptions).toEqual([]);
    });

    it.each([
      '',
      'https://example.com/@tidewater',
      'x'.repeat(3_000),
      'UC',
      '@',
      'https://www.youtube.com/@tidewater?\0',
    ])('for %j, which refers to no channel, is 404 without a request to the platform', async (reference) => {
      const { key } = await idle.organization();
      const { total } = idle.fakeYoutube.requests;
      const response = await post(key, { channel: reference });
      expect([response.status, response.body.error.code]).toEqual([404, 'channel_not_found']);
      expect((await idle.get('/subscriptions', key)).body.subscriptions).toEqual([]);
      expect(idle.fakeYoutube.requests.total).toBe(total);
    });
  });
});

describe('operations', () => {
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
      expect([response.status, response.body.error.details]).toEqual([
        400,
        [expect.objectContaining({ field: 'page' })],
      ]);
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
        {
          code: 'rate_limited',
          retryable: true,
          message: expect.stringMatching(/every 10 seconds.* Retry after \d+ s/),
        },
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
});

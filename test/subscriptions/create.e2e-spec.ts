import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKey } from '../../src/organizations/api-key.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { SubscriptionsService } from '../../src/jobs/subscriptions.service.js';
import { startService, type TestService } from '../harness/service.js';
import { postJob } from '../jobs/job-requests.js';
import { follow, onSubscriptions } from './subscription-requests.js';

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
      },
      ...{ labels: { user: '42' }, startFound: null },
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
      ...{ languages: [], match: 'all', kinds: [], include: [], chunkSeconds: null },
      ...{ checkMinutes: 60, start: 'now', labels: {} },
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
        message: 'Your organization has reached the limit of 2 subscriptions, paused ones included. Delete one first.',
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
    ['an API key in the channel', { channel: `https://youtube.com/@tide?key=${generateKey()}` }, 'channel', /API key/],
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
    ['the interval by another name', { channel, interval: 60 }, 'interval', /Its parameters: channel, .*checkMinutes/],
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

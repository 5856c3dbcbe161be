import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  AdminClient,
  ChannelTranscriptsClient,
  isChannelTranscriptsError,
  type ClientOptions,
  type JobEvent,
  type KnownError,
} from '@channel-transcripts/client';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { startReceiver, WEBHOOK_SECRET_KEY } from '../webhooks/receiver.js';

const ADMIN_TOKEN = 'an-admin-token-for-the-tests-of-clients';

let service: TestService;
beforeAll(async () => {
  service = await startService({
    environment: { WEBHOOK_ALLOW_PRIVATE: true, WEBHOOK_SECRET_KEY, ADMIN_TOKEN },
  });
});
afterAll(() => service.close());

const clientOf = (apiKey: string, options: Partial<ClientOptions> = {}): ChannelTranscriptsClient =>
  new ChannelTranscriptsClient({ baseUrl: service.url, apiKey, ...options });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const read = [];
  for await (const item of items) read.push(item);
  return read;
}

/** The error of a refused call; fails the test when the call succeeds. */
async function refusal(call: Promise<unknown>): Promise<KnownError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (isChannelTranscriptsError(error)) return error;
  throw new Error('The call was not refused by the service.', { cause: error });
}

describe('the TypeScript client', () => {
  it('returns the transcripts of a channel, for every form of reference', async () => {
    const { key } = await service.organization();
    for (const channel of ['@tidewater', 'https://www.youtube.com/@tidewater/videos']) {
      const { channel: found, results, summary } = await clientOf(key).transcripts(channel, { limit: 2 });
      expect([found.handle, results.length, summary.succeeded]).toEqual(['@tidewater', 2, 2]);
      expect(results[0]?.transcript['en']?.[0]?.text).toEqual(expect.any(String));
    }
    const { results } = await clientOf(key).transcripts('@harbourlight', { limit: 100, languages: ['de', 'fr'] });
    const languages = new Set(results.flatMap(({ transcript }) => Object.keys(transcript)));
    expect([...languages].filter((language) => !/^(de|fr)/.test(language))).toEqual([]);
    expect(languages.size).toBeGreaterThan(0);
  });

  it('throws the error of each refusal, with the fields of its code', async () => {
    const poor = await service.organization({ monthlyLimit: 1 });
    const exceeded = await refusal(clientOf(poor.key).transcripts('@fogsignalradio', { limit: 3 }));
    if (exceeded.code !== 'plan_limit_exceeded') throw exceeded;
    const fields = { limit: 1, used: 0, required: 3, scope: 'organization' };
    expect(exceeded).toMatchObject({ status: 402, retryable: false, fields });
    const wrong = await refusal(clientOf(poor.key).transcripts('@tidewater', { limit: 0 }));
    if (wrong.code !== 'invalid_request') throw wrong;
    expect([wrong.status, wrong.fields.details[0]?.field]).toEqual([400, 'limit']);
    const unknown = await refusal(clientOf(poor.key).transcripts('@no-such-channel'));
    expect(unknown).toMatchObject({ status: 404, code: 'channel_not_found', retryable: false });
    expect(service.logs.some((line) => line.includes(String(unknown.requestId)))).toBe(true);
    const early = await refusal(clientOf('ctk_wrong').events('@tidewater').next());
    expect([early.status, early.code]).toEqual([401, 'invalid_api_key']);
  });

  it('throws errors whose `docs` is the page about them', async () => {
    const { docs } = await refusal(clientOf('ctk_wrong').usage());
    expect(docs).toBe(`${service.url}/docs/errors#invalid_api_key`);
    expect(await (await fetch(docs ?? '')).text()).toContain('id="invalid_api_key"');
  });

  it('asks its provider for another credential when the service refuses one, and repeats the call', async () => {
    const admin = new AdminClient({ baseUrl: service.url, token: () => Promise.resolve(ADMIN_TOKEN) });
    const { id } = await service.organization();
    const keys = [await admin.issueKey(id, { name: 'first' }), await admin.issueKey(id, { name: 'second' })];
    let given = 0;
    const token = (): Promise<string> => Promise.resolve(keys[given++]?.key ?? 'ctk_none');
    const client = new ChannelTranscriptsClient({ baseUrl: service.url, token, retries: 0 });
    await client.usage();
    await admin.revokeKey(keys[0]?.id ?? '');
    const job = await client.jobs.create('@2-videos-no-78');
    expect((await client.jobs.get(job.id)).id).toBe(job.id);
    await admin.revokeKey(keys[1]?.id ?? '');
    expect((await refusal(client.usage())).code).toBe('invalid_api_key');
    expect(given).toBe(3);
  });

  it('ends a call without charge when its reader stops iterating', async () => {
    const client = clientOf((await service.organization()).key);
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, 2);
    const events = client.events('@2-videos-no-73');
    await events.next();
    await hold.arrived;
    await events.return(undefined);
    await until(async () => (await client.usage()).reserved === 0);
    hold.release();
    expect((await client.usage()).used).toBe(0);
    service.fakeYoutube.reset();
  });

  it('follows an archive job to its end, with each entry once and in order', async () => {
    const { key, id: organizationId } = await service.organization();
    const client = clientOf(key);
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const options = { limit: 60, idempotencyKey: 'archive' };
    const job = await client.jobs.create('@61-videos-no-20', options);
    const results = client.jobs.results(job.id);
    const first = results.next();
    await hold.arrived;
    hold.release();
    const read = [await first];
    while (read.at(-1)?.done === false) read.push(await results.next());
    const finished = await client.jobs.waitFor(job.id);
    expect(finished).toMatchObject({ state: 'completed', checkAgainSeconds: null });
    expect(finished.summary).toEqual({ total: 60, succeeded: 60, failed: 0, cached: 0, fetched: 60, pending: 0 });
    expect(read.at(-1)).toMatchObject({ done: true, value: { id: job.id, state: 'completed' } });
    const ids = read.flatMap(({ value }) => ('videoId' in value ? [value.videoId] : []));
    const { uploads } = await client.uploads('@61-videos-no-20', { limit: 60 });
    expect(ids).toEqual(uploads.map(({ videoId }) => videoId));
    expect((await client.usage()).used).toBe(60);

    expect((await client.jobs.create('@61-videos-no-20', options)).id).toBe(job.id);
    const wanted = { path: { id: job.id }, query: { limit: 2, after: '57' } };
    const { results: page, next } = await client.call('getJobResults', wanted);
    expect([page.map(({ videoId }) => videoId), next]).toEqual([ids.slice(57, 59), expect.stringMatching(/^59\./)]);
    expect((await all(client.jobs.list())).map((one) => one.id)).toEqual([job.id]);
    const ended = await refusal(client.jobs.cancel(job.id));
    expect([ended.status, ended.code]).toEqual([409, 'job_finished']);
    const other = clientOf((await service.organization()).key);
    expect((await refusal(other.jobs.get(job.id))).code).toBe('job_not_found');
    await client.jobs.delete(job.id);
    expect((await refusal(client.jobs.waitFor(job.id))).code).toBe('job_not_found');
    expect((await client.usage()).organization).toBe(organizationId);
    service.fakeYoutube.reset();
  });

  it('cancels and resumes a job, and stops waiting for one when it is aborted', async () => {
    const client = clientOf((await service.organization()).key);
    const hold = service.fakeYoutube.hold({ kind: 'browse' });
    const { id } = await client.jobs.create('@3-videos-no-74');
    const leaving = new AbortController();
    const onProgress = (): void => leaving.abort();
    await expect(client.jobs.waitFor(id, { signal: leaving.signal, onProgress })).rejects.toThrow(/abort/i);
    expect(await client.jobs.cancel(id)).toMatchObject({ id, state: 'canceled' });
    hold.release();
    service.fakeYoutube.reset();
    expect((await client.jobs.resume(id)).state).not.toBe('canceled');
    await until(async () => (await client.jobs.get(id)).state === 'completed');
    expect(await client.jobs.waitFor(id)).toMatchObject({ state: 'completed', summary: { succeeded: 3, fetched: 3 } });
  });

  it('creates, tests, rotates, lists and deletes webhooks, whose messages its secrets verify', async () => {
    const client = clientOf((await service.organization()).key);
    const { webhooks, jobs } = client;
    const receiver = await startReceiver();
    try {
      const { id, secret, events } = await webhooks.create(receiver.url, { events: ['job.completed'] });
      expect([secret.startsWith('whsec_'), events]).toEqual([true, ['job.completed']]);
      expect(await webhooks.test(id)).toMatchObject({ delivered: true, responseStatus: 204 });
      const rotated = await webhooks.rotate(id);
      const job = await jobs.create('@2-videos-no-75');
      await until(() => receiver.received.length === 2);
      const [, message] = receiver.received;
      if (!message) throw new Error('The message has not arrived.');
      const expected: JobEvent = {
        type: 'job.completed',
        timestamp: expect.stringMatching(/^20.*Z$/) as unknown as string,
        data: {
          jobId: job.id,
          labels: {},
          state: 'completed',
          reason: null,
          channelId: expect.stringMatching(/^UC/) as unknown as string,
          summary: { total: 2, succeeded: 2, failed: 0, cached: 0, fetched: 2, pending: 0 },
        },
      };
      for (const each of [secret, rotated.secret]) {
        expect(await webhooks.verify(message.body, message.headers, each)).toEqual(expected);
      }
      await expect(webhooks.verify(`${message.body} `, message.headers, secret)).rejects.toThrow('not genuine');
      await until(async () => (await webhooks.deliveries(id).next()).value?.state === 'succeeded');
      expect((await webhooks.list()).map((one) => one.id)).toEqual([id]);
      expect(await webhooks.change(id, { events: null, labels: { user: '42' } })).toMatchObject({
        labels: { user: '42' },
      });
      const { value: delivery } = await webhooks.deliveries(id).next();
      expect(await webhooks.retry(id, delivery?.id ?? '')).toMatchObject({
        eventId: delivery?.eventId,
        state: 'pending',
      });
      expect(await webhooks.replay(id)).toMatchObject({ replaying: true });
      await webhooks.delete(id);
      expect(await webhooks.list()).toEqual([]);
      expect((await refusal(webhooks.test(id))).status).toBe(404);
    } finally {
      await receiver.close();
    }
  });

  it('reads a playlist, a list, one video and its subtitles, and the state of the service', async () => {
    const client = clientOf((await service.organization()).key);
    const types = async (events: AsyncIterable<{ type: string }>) =>
      new Set((await all(events)).map(({ type }) => type));
    expect(await types(client.playlistEvents(SATURDAY.id, { limit: 1 }))).toEqual(
      new Set(['playlist', 'result', 'summary']),
    );
    expect(await types(client.videosEvents(['tw-chowder_']))).toEqual(new Set(['result', 'summary']));
    expect((await client.playlist(SATURDAY.id, { limit: 1 })).summary).toMatchObject({ total: 1, fetched: 0 });
    const { results } = await client.videos(['tw-chowder_', 'tw-bread___']);
    expect(results.map(({ videoId }) => videoId)).toEqual(['tw-chowder_', 'tw-bread___']);
    expect(await client.video('tw-chowder_')).toEqual({ ...results[0], cached: true });
    expect(await client.videoAs('srt', 'tw-chowder_')).toMatch(/^1\n00:00:00,240 --> /);
    expect(await client.ready()).toMatchObject({ status: 'ok', stopping: false });
    expect(await client.call('getLive', {})).toMatchObject({ status: 'ok' });
  });

  it('does what an operator does, each change with its entry in the audit', async () => {
    const admin = new AdminClient({ baseUrl: service.url, adminToken: ADMIN_TOKEN });
    const { id } = await admin.createOrganization({ name: 'Estate', plan: 'free' });
    expect(await admin.changeOrganization(id, { plan: 'pro' })).toMatchObject({ id, plan: 'pro' });
    expect(await admin.organization(id)).toMatchObject({ name: 'Estate' });
    expect((await all(admin.organizations())).map((one) => one.id)).toContain(id);
    const issued = await admin.issueKey(id, { name: 'first' });
    const client = clientOf(issued.key, { retries: 0 });
    await client.transcripts('@2-videos-no-76');
    const rotated = await admin.rotateKey(issued.id, {});
    expect((await all(admin.keys(id))).map((one) => one.id).sort()).toEqual([issued.id, rotated.id].sort());
    await admin.revokeKey(issued.id);
    expect((await refusal(client.usage())).code).toBe('invalid_api_key');
    expect(await clientOf(rotated.key).usage()).toMatchObject({ organization: id, used: 2 });
    expect(JSON.stringify(await admin.usage(id, { by: 'day' }))).toContain('"used":2');
    const job = await clientOf(rotated.key).jobs.create('@3-videos-no-77', { languages: ['en'] });
    expect((await admin.cancelJob(job.id).catch(() => undefined))?.id ?? job.id).toBe(job.id);
    expect(await admin.pruneUsage()).toEqual(expect.any(Object));
    await admin.deleteOrganization(id);
    const actions = (await all(admin.audit({ organization: id }))).map(({ action }) => action);
    expect(actions.length).toBeGreaterThanOrEqual(6);
    const other = new AdminClient({ baseUrl: service.url, adminToken: 'wrong' });
    expect((await refusal(other.organization(id))).status).toBe(401);
  });

  it('follows a channel: each upload once, with a cursor from which another loop goes on', async () => {
    const client = clientOf((await service.organization()).key);
    const { id, request } = await client.subscriptions.create('@3-videos-no-75', { start: 2, languages: ['fi', '*'] });
    expect(request).toMatchObject({ start: 2, languages: ['fi', '*'], checkMinutes: 60 });
    await until(async () => (await client.subscriptions.get(id)).summary.succeeded === 2);
    const read: string[] = [];
    let after = '';
    for await (const { cursor, videoId, ok } of client.subscriptions.follow(id)) {
      read.push(videoId);
      expect([ok, cursor]).toEqual([true, expect.stringMatching(new RegExp(`^${read.length}\\.`))]);
      after = cursor;
      if (read.length === 2) break;
    }
    const [videoId] = service.fakeYoutube.publish({ channel: '@3-videos-no-75', count: 1 });
    await client.subscriptions.check(id);
    await until(async () => (await client.subscriptions.get(id)).summary.succeeded === 3);
    const next = await client.subscriptions.follow(id, { after }).next();
    expect(next.value).toMatchObject({ videoId, cursor: expect.stringMatching(/^3\./), ok: true });
    const all3 = client.subscriptions.feed();
    expect((await all3.next()).value).toMatchObject({ videoId: read[0], subscriptionId: id, labels: {} });
    await all3.return(undefined as never);
    expect(read).not.toContain(videoId);
    expect((await client.subscriptions.change(id, { state: 'paused' })).reason).toBe('paused_by_caller');
    expect((await all(client.subscriptions.list())).map((each) => each.id)).toEqual([id]);
    await client.subscriptions.delete(id);
    const gone = await refusal(client.subscriptions.follow(id).next());
    expect([gone.status, gone.code]).toEqual([404, 'subscription_not_found']);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { SubscriptionDto } from '../../src/jobs/dto/subscription.dto.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createJob, waitForJob } from '../jobs/job-requests.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';
import { deleteFromLibrary, libraryVideos, search } from './library-requests.js';

let service: TestService;
/** A process on the same database with empty caches, which the platform refuses everything. */
let blocked: TestService;

beforeAll(async () => {
  service = await startService();
  blocked = await startService({
    environment: { JOB_CONCURRENCY: 0, UPSTREAM_RETRIES: 0 },
    databaseUrl: () => Promise.resolve(service.databaseUrl),
  });
  blocked.fakeYoutube.setFaults({ kind: 'bot-check' }, { kind: 'captcha', match: { kind: 'browse' } });
});
afterAll(async () => {
  await blocked.close();
  await service.close();
});

beforeEach(() => service.fakeYoutube.reset());

/** A job that is done. */
async function done(key: string, body: object): Promise<string> {
  const id = await createJob(service, key, body);
  await waitForJob(service, key, id);
  return id;
}

const kept = async (key: string, query = ''): Promise<string[]> =>
  (await libraryVideos(service, key, query)).videos.map(({ videoId }) => videoId);

async function usageOf(key: string): Promise<{ used: number; library: { videos: number; megabytes: number } }> {
  return (await service.get('/usage', key)).body as Awaited<ReturnType<typeof usageOf>>;
}

const jsonOf = (key: string) => ({ Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' });

const transcript = (from: TestService, key: string, videoId: string, query = '') =>
  from.get(`/videos/${videoId}/transcript${query}`, key);

describe('what a job keeps', () => {
  it('answers the calls of its organization at no cost, with empty caches and while the platform blocks', async () => {
    const { key } = await service.organization();
    await done(key, { channel: '@tidewater', keep: true });
    const { used, library } = await usageOf(key);
    expect(library).toEqual({ videos: 5, megabytes: 1, limitMegabytes: 2048 });
    const ids = await kept(key);
    const asked = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const answer = await blocked.request('POST', '/transcripts', asked, JSON.stringify({ videos: ids }));
    expect(answer.body.summary).toEqual({ total: 5, succeeded: 5, failed: 0, cached: 5, fetched: 0 });
    const one = await transcript(service, key, ids[0] ?? '');
    const again = await transcript(blocked, key, ids[0] ?? '', '?languages=en');
    expect(again.body.transcript).toEqual(one.body.transcript);
    expect(again.body).toMatchObject({ cached: true, metadata: { captionTracks: one.body.metadata.captionTracks } });
    expect((await usageOf(key)).used).toBe(used);
  });

  it('is not fetched again by another job, and is nothing to another organization', async () => {
    const { key } = await service.organization();
    const other = await service.organization();
    await done(key, { videos: ['hl-dinghy__'], keep: true });
    const job = await waitForJob(service, key, await createJob(service, key, { videos: ['hl-dinghy__'] }));
    expect(job.summary).toMatchObject({ cached: 1, fetched: 0 });
    expect((await transcript(blocked, other.key, 'hl-dinghy__')).status).toBe(502);
    expect(await search(service, other.key, 'the')).toEqual({ results: [], next: null, total: 0 });
    expect(await kept(other.key)).toEqual([]);
    expect((await deleteFromLibrary(service, other.key, '/videos/hl-dinghy__')).status).toBe(404);
    expect(await kept(key)).toEqual(['hl-dinghy__']);
  });

  it('is not lost with its job, and kept once for several', async () => {
    const { key } = await service.organization();
    const id = await done(key, { videos: ['hl-dinghy__'], keep: true, labels: { user: '1' } });
    await done(key, { videos: ['hl-dinghy__'], keep: true, labels: { user: '2' } });
    await done(key, { videos: ['hl-dinghy__'], keep: true, languages: ['en'] });
    await service.request('DELETE', `/jobs/${id}`, { Authorization: `Bearer ${key}` });
    const { videos } = await libraryVideos(service, key);
    expect(videos).toEqual([
      expect.objectContaining({ videoId: 'hl-dinghy__', languages: ['en'], labels: ['user:1', 'user:2'] }),
    ]);
    expect(await kept(key, '?label=user:1')).toEqual(['hl-dinghy__']);
    expect(await kept(key, '?label=user:3')).toEqual([]);
    expect((await usageOf(key)).library.videos).toBe(1);
  });

  it('is not stored when the slice is not', async () => {
    const { key, id: organizationId } = await service.organization();
    await service.query(`
      CREATE FUNCTION refuse_passages() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.organization_id = '${organizationId}' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse_passages BEFORE INSERT ON library_passages FOR EACH ROW EXECUTE FUNCTION refuse_passages()`);
    const id = await createJob(service, key, { videos: ['hl-dinghy__'], keep: true });
    await until(async () => (await service.query(`SELECT FROM jobs WHERE id = '${id}' AND setbacks > 0`)).length > 0);
    expect((await service.get(`/jobs/${id}`, key)).body).toMatchObject({ summary: { pending: 1, fetched: 0 } });
    expect(await usageOf(key)).toMatchObject({ used: 0, library: { videos: 0 } });
    await service.query('DROP TRIGGER refuse_passages ON library_passages');
    await service.query(`UPDATE jobs SET next_run_at = clock_now() WHERE id = '${id}'`);
    expect((await waitForJob(service, key, id)).summary.succeeded).toBe(1);
    expect((await search(service, key, 'the')).total).toBeGreaterThan(0);
  });
});

describe('a job', () => {
  const change = (key: string, id: string, body: object) =>
    service.request(
      'PATCH',
      `/jobs/${id}`,
      { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      JSON.stringify(body),
    );

  it('that keeps from now on also keeps what is stored, and one that does not any more leaves what is kept', async () => {
    const { key } = await service.organization();
    const { key: other } = await service.organization();
    const id = await done(key, { channel: '@tidewater' });
    expect(await kept(key)).toEqual([]);
    expect(await change(key, id, { keep: true })).toMatchObject({
      status: 200,
      body: { keep: 'on', request: { keep: true }, summary: { succeeded: 5 } },
    });
    await until(async () => (await kept(key)).length === 5);
    expect((await change(key, id, { keep: false })).body).toMatchObject({ keep: 'off' });
    expect(await kept(key)).toHaveLength(5);
    for (const body of [{}, { keep: null }, { keep: 1 }, { keep: true, limit: 5 }])
      expect((await change(key, id, body)).status).toBe(400);
    expect((await change(other, id, { keep: true })).status).toBe(404);
    const { entries } = (await service.get('/audit', key)).body as { entries: object[] };
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'job.changed', target: id, before: { keep: true }, after: { keep: false } },
      { action: 'job.changed', target: id, before: { keep: false }, after: { keep: true } },
    ]);
  });

  it('that was changed is the one of its idempotency key', async () => {
    const { key } = await service.organization();
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'once' };
    const create = () => service.request('POST', '/jobs', headers, '{"videos":["hl-dinghy__"]}');
    const { id } = (await create()).body as { id: string };
    await change(key, id, { keep: true });
    expect((await create()).body).toMatchObject({ id, keep: 'on' });
    await until(async () => (await kept(key)).length === 1);
  });
});

describe('a subscription', () => {
  it('that keeps from now on also keeps what is stored', async () => {
    const { key } = await service.organization();
    const { id, keep } = await follow(service, key, { channel: '@tidewater', start: 3, chunkSeconds: 60 });
    expect(keep).toBe('off');
    const subscription = async () => (await onSubscriptions(service, key, 'GET', `/${id}`)).body as SubscriptionDto;
    await until(async () => (await subscription()).summary.succeeded === 3);
    expect(await kept(key)).toEqual([]);
    const changed = await onSubscriptions(service, key, 'PATCH', `/${id}`, { keep: true });
    expect(changed.body).toMatchObject({ keep: 'on', request: { keep: true } });
    await until(async () => (await kept(key)).length === 3);
    await until(async () => (await service.query('SELECT FROM library_backlog')).length === 0);
    const { results } = await search(service, key, 'the');
    expect(results.length).toBeGreaterThan(0);
    const metrics = (await service.request('GET', '/metrics')).text;
    expect(metrics).toMatch(/^ct_library_backlog_results 0$/m);
    await onSubscriptions(service, key, 'PATCH', `/${id}`, { keep: false });
    service.fakeYoutube.publish({ channel: '@tidewater', title: 'Not kept' });
    await onSubscriptions(service, key, 'POST', `/${id}/check`);
    await until(async () => (await subscription()).summary.succeeded === 4);
    expect(await kept(key)).toHaveLength(3);
  });

  it('that keeps from now on has what is stored in the feed for as long as the text is kept, also one that another has kept', async () => {
    const { key, id: organizationId } = await service.organization();
    await done(key, { channel: '@tidewater', limit: 1, keep: true });
    const { id } = await follow(service, key, { channel: '@tidewater', start: 3 });
    const results = async () => (await service.get('/feed', key)).body.results as { videoId: string }[];
    await until(async () => (await results()).length === 3);
    const ids = (await results()).map(({ videoId }) => videoId);
    await onSubscriptions(service, key, 'PATCH', `/${id}`, { keep: true });
    await until(async () => (await kept(key)).length === 3);
    await until(async () => (await service.query('SELECT FROM library_backlog')).length === 0);
    const expire = `
      UPDATE log_entries SET expires_at = clock_now() WHERE organization_id = '${organizationId}';
      UPDATE organization_logs SET remove_at = clock_now() WHERE organization_id = '${organizationId}'`;
    const expired = async () => {
      await service.query(expire);
      const due = `SELECT FROM organization_logs WHERE organization_id = '${organizationId}' AND remove_at IS NOT NULL`;
      await until(async () => (await service.query(due)).length === 0);
    };
    await expired();
    expect((await results()).map(({ videoId }) => videoId)).toEqual(ids);
    expect((await deleteFromLibrary(service, key, `/videos/${ids[1]}`)).status).toBe(204);
    await expired();
    expect((await results()).map(({ videoId }) => videoId)).toEqual([ids[0], ids[2]]);
    const link = (await service.request('POST', '/feed-links', jsonOf(key), '{}')).body as { url: string };
    const feed = await service.request('GET', new URL(link.url).pathname.replace(/[.]atom$/, '.json'));
    expect((feed.body as { items: { url: string }[] }).items.map(({ url }) => url.slice(-11))).toEqual([
      ids[2],
      ids[0],
    ]);
  });

  it('keeps entries of before from their stored form, when nothing is cached', async () => {
    const { key } = await service.organization();
    const id = await done(key, { videos: ['hl-keeper__'], languages: ['de', 'en'], chunkSeconds: 30 });
    await service.query(`
      UPDATE jobs SET request = (request::jsonb || '{"keep": true}')::text WHERE id = '${id}';
      INSERT INTO library_backlog (job_id) SELECT '${id}'`);
    await until(async () => (await kept(key)).length === 1);
    expect(await libraryVideos(service, key)).toMatchObject({ videos: [{ languages: ['de', 'en'] }] });
  });
});

describe('a library at its limit', () => {
  it('delivers and charges without keeping, says so, and announces it once', async () => {
    const { key, id: organizationId } = await service.organization();
    await done(key, { videos: ['hl-dinghy__'], keep: true });
    const full = service.query(
      `UPDATE libraries SET bytes = ${2048 * 1024 * 1024} WHERE organization_id = '${organizationId}'`,
    );
    await full;
    await service.query(`
      INSERT INTO webhooks (id, organization_id, url, secret, created_at)
        VALUES ('whk_${'7'.repeat(24)}', '${organizationId}', 'https://hooks.example.com/', '\\x00', now())`);
    const id = await done(key, { videos: ['hl-keeper__', 'hl-pearl___'], keep: true });
    await done(key, { videos: ['hl-bowline_'], keep: true });
    expect((await service.get(`/jobs/${id}`, key)).body).toMatchObject({ keep: 'full', summary: { succeeded: 2 } });
    expect(await kept(key)).toEqual(['hl-dinghy__']);
    const events = await service.query(
      `SELECT data FROM webhook_deliveries WHERE webhook_id = 'whk_${'7'.repeat(24)}' AND type = 'library.full'`,
    );
    expect(events).toEqual([{ data: { videos: 1, megabytes: 2048, limitMegabytes: 2048 } }]);
    expect((await deleteFromLibrary(service, key, '/videos/hl-dinghy__')).status).toBe(204);
    await service.query(`UPDATE libraries SET bytes = 0 WHERE organization_id = '${organizationId}'`);
    await done(key, { videos: ['hl-bowline_'], keep: true });
    expect(await kept(key)).toEqual(['hl-bowline_']);
  });
});

describe('a deletion', () => {
  it('of a video or a channel ends its search at once, and its rows within a minute', async () => {
    const { key, id: organizationId } = await service.organization();
    await done(key, { channel: '@tidewater', keep: true });
    await done(key, { videos: ['hl-dinghy__'], keep: true });
    const before = await usageOf(key);
    expect(before.library.videos).toBe(6);
    expect((await deleteFromLibrary(service, key, '/videos/hl-dinghy__')).status).toBe(204);
    expect((await deleteFromLibrary(service, key, '/videos/hl-dinghy__')).status).toBe(404);
    expect((await deleteFromLibrary(service, key, '?channel=@TideWater')).body).toEqual({ videos: 5 });
    expect((await search(service, key, 'the')).total).toBe(0);
    expect(await kept(key)).toEqual([]);
    expect((await usageOf(key)).library).toMatchObject({ videos: 0, megabytes: 0 });
    const { entries } = (await service.get('/audit', key)).body as { entries: object[] };
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'library.deleted', target: '@TideWater', before: { videos: 5 } },
      { action: 'library.deleted', target: 'hl-dinghy__', before: { videos: 1 } },
    ]);
    await until(async () => (await rowsOf(organizationId)).every((count) => count === 0));
  });

  it('of an organization removes what it kept', async () => {
    const { key, id: organizationId } = await service.organization();
    await done(key, { videos: ['hl-dinghy__'], keep: true });
    expect(await rowsOf(organizationId)).toEqual([1, expect.any(Number)]);
    await service.query(`UPDATE organizations SET deleted_at = clock_now() WHERE id = '${organizationId}'`);
    await until(async () => (await rowsOf(organizationId)).every((count) => count === 0));
  });
});

async function rowsOf(organizationId: string): Promise<number[]> {
  const counted = ['library_texts', 'library_passages'].map((table) =>
    service.query(`SELECT count(*)::integer AS rows FROM ${table} WHERE organization_id = '${organizationId}'`),
  );
  return (await Promise.all(counted)).map(([row]) => row?.['rows'] as number);
}

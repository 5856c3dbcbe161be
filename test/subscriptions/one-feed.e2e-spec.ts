import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { linesOf } from '../jobs/job-requests.js';
import type { TestOrganization, TestService } from '../harness/service.js';
import { deleteFromLibrary, libraryVideos } from '../library/library-requests.js';
import { follow, onSubscriptions } from './subscription-requests.js';

/** For which results are stored. */
const WEEK = 7 * 24 * 3_600;

let steps: SliceSteps;
let service: TestService;
let organization: TestOrganization;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
  ({ service } = steps);
});
afterAll(() => service.close());
beforeEach(async () => {
  await steps.reset();
  organization = await service.organization();
});

interface Entry {
  videoId: string;
  subscriptionId: string;
  channel: { handle: string };
  labels: Record<string, string>;
}
interface Page {
  results: Entry[];
  next: string;
}

const get = (path: string, headers: Record<string, string> = {}) => service.get(path, organization.key, headers);

async function feed(query = ''): Promise<Page> {
  const { status, body } = await get(`/feed${query}`);
  expect(status).toBe(200);
  return body as Page;
}

/** What the response says that refuses to go on. */
async function refusal(path: string): Promise<{ code: string; expired: number; oldest: string }> {
  const { status, body } = await get(path);
  expect(status).toBe(410);
  const { code, expired, oldest } = body.error as Awaited<ReturnType<typeof refusal>>;
  return { code, expired, oldest };
}

async function loggedEntries(): Promise<unknown> {
  const count = `SELECT count(*)::int AS count FROM log_entries WHERE organization_id = '${organization.id}'`;
  return (await service.query(count))[0]?.['count'];
}

/** Reads on with pages of a size until nothing else is stored. */
async function readOn(after: string | undefined, limit: number, filter = ''): Promise<{ ids: string[]; next: string }> {
  const ids: string[] = [];
  for (let cursor = after; ;) {
    const page = await feed(`?limit=${limit}${filter}${cursor === undefined ? '' : `&after=${cursor}`}`);
    ids.push(...page.results.map(({ videoId }) => videoId));
    if (page.next === cursor) return { ids, next: page.next };
    cursor = page.next;
  }
}

/** A subscription whose start was delivered. */
async function followed(body: object): Promise<string> {
  const { id } = await follow(service, organization.key, body);
  await steps.finish();
  return id;
}

/** Publishes uploads, and has them delivered. @returns their IDs, oldest first */
async function published(channel: string, ids: readonly string[], count = 1): Promise<string[]> {
  const videoIds = service.fakeYoutube.publish({ channel, count });
  for (const id of ids) await service.query(`SELECT subscription_check('${organization.id}', '${id}', 0)`);
  await steps.finish();
  return videoIds;
}

/** The tables of a subscription and of the log of its organization, as a backup has them. */
async function backup(id: string): Promise<() => Promise<void>> {
  const conditions = { jobs: `id = '${id}'`, job_videos: `job_id = '${id}'` };
  const ofOrganization = `organization_id = '${organization.id}'`;
  const tables = { ...conditions, log_entries: ofOrganization, organization_logs: ofOrganization };
  const suffix = id.slice(-6).toLowerCase();
  for (const [table, condition] of Object.entries(tables))
    await service.query(`CREATE TABLE backup_${table}_${suffix} AS SELECT * FROM ${table} WHERE ${condition}`);
  return async () => {
    for (const [table, condition] of Object.entries(tables).reverse())
      await service.query(`DELETE FROM ${table} WHERE ${condition}`);
    await service.query('ALTER TABLE jobs DISABLE TRIGGER USER');
    for (const table of Object.keys(tables)) {
      await service.query(`INSERT INTO ${table} SELECT * FROM backup_${table}_${suffix}`);
      await service.query(`DROP TABLE backup_${table}_${suffix}`);
    }
    await service.query('ALTER TABLE jobs ENABLE TRIGGER USER');
  };
}

describe('the feed', () => {
  it('has the entries of all subscriptions in one order, each with whose it is, in every form', async () => {
    const labels = { user: '42' };
    const tidewater = await followed({ channel: '@tidewater', start: 2, kinds: ['video'], labels });
    const other = await followed({ channel: '@3-videos-no-75', start: 1 });
    const newest = await published('@tidewater', [tidewater]);
    const page = await feed();
    expect(page.results).toHaveLength(4);
    expect(page.results.map(({ subscriptionId }) => subscriptionId)).toEqual([tidewater, tidewater, other, tidewater]);
    expect(page.results.at(-1)).toMatchObject({ videoId: newest[0], labels, channel: { handle: '@tidewater' } });
    const parts = await Promise.all([tidewater, other].map((id) => get(`/subscriptions/${id}/results`)));
    const whole = page.results.map(({ subscriptionId: _, channel: __, labels: ___, ...entry }) => entry);
    expect(parts.flatMap(({ body }) => body.results as unknown[]).sort()).toEqual(expect.arrayContaining(whole));

    const lines = linesOf((await get('/feed', { Accept: 'application/x-ndjson' })).text);
    expect(lines.map(({ type }) => type as string)).toEqual([...whole.map(() => 'result'), 'summary']);
    expect(lines[0]).toMatchObject({ subscriptionId: tidewater, labels, result: whole[0] });
    expect(lines.at(-1)).toEqual({ type: 'summary', next: page.next });
    const markdown = await get('/feed', { Accept: 'text/markdown' });
    expect(markdown.headers['content-type']).toBe('text/markdown; charset=utf-8');
    expect(markdown.text).toContain('\nChannel: Tidewater Kitchen\n');
    expect(markdown.text).toContain(`after=${page.next}`);

    expect(await feed(`?after=${page.next}`)).toEqual({ results: [], next: page.next });
    for (const limit of [1, 3, 100])
      expect((await readOn(undefined, limit)).ids).toEqual(page.results.map(({ videoId }) => videoId));
    expect((await get('/feed?after=2')).body.error.code).toBe('invalid_request');
  });

  it('is filtered by label and channel, and a filtered read of many entries ends early with a place to go on', async () => {
    const id = await followed({ channel: '@tidewater', start: 1, labels: { user: '42', 'team.a': 'é:x' } });
    const other = await followed({ channel: '@3-videos-no-75', start: 2 });
    const [first] = (await feed()).results;
    for (const query of ['label=user:42', `label=team.a:${encodeURIComponent('é:x')}`, 'channel=@Tidewater'])
      expect((await readOn(undefined, 5, `&${query}`)).ids).toEqual([first?.videoId]);
    expect((await readOn(undefined, 5, `&channel=${first?.channel.handle}&label=user:4`)).ids).toEqual([]);
    const lists = ['?label=user:42', '?channel=tidewater', '?label=user:42&channel=@3-videos-no-75'].map(
      async (query) => {
        const { subscriptions } = (await get(`/subscriptions${query}`)).body as { subscriptions: { id: string }[] };
        return subscriptions.map((one) => one.id);
      },
    );
    expect(await Promise.all(lists)).toEqual([[id], [id], []]);
    // Many entries of the other one, and then one of this.
    await service.query(`
      INSERT INTO log_entries SELECT organization_id, 10 + number, mark, job_id, position, expires_at
        FROM log_entries, generate_series(1, 2500) number WHERE job_id = '${other}' AND sequence = 3;
      DELETE FROM log_entries WHERE organization_id = '${organization.id}' AND sequence BETWEEN 2 AND 3;
      UPDATE organization_logs SET last_sequence = 2510 WHERE organization_id = '${organization.id}'`);
    const [last] = await published('@tidewater', [id]);
    const page = await feed('?label=user:42');
    expect(page.results).toHaveLength(1);
    const rest = await readOn(page.next, 5, '&label=user:42');
    expect(rest.ids).toEqual([last]);
    const lines = linesOf((await get('/feed?label=user:42', { Accept: 'application/x-ndjson' })).text);
    expect(lines).toHaveLength(3);
  });

  it('is filtered by channel, as the list is, whatever characters the name of a followed channel has', async () => {
    const id = await followed({ channel: '@tidewater', start: 1 });
    for (const name of ['\\u0000', '\\ud800', '\\"handle\\":\\"@other\\"']) {
      const channel = `{"id":"UC","name":"${name}","handle":"@Tidewater"}`;
      await service.query(`UPDATE jobs SET channel = '${channel}' WHERE id = '${id}'`);
      for (const [wanted, found] of [
        ['@tideWater', [id]],
        ['@other', []],
      ] as const) {
        const { body } = await get(`/subscriptions?channel=${wanted}`);
        expect(body.subscriptions).toMatchObject(found.map((each) => ({ id: each })));
        expect((await feed(`?channel=${wanted}`)).results).toMatchObject(
          found.map((each) => ({ subscriptionId: each })),
        );
      }
    }
  });

  it('goes on after the entry of a subscription that was deleted', async () => {
    const kept = await followed({ channel: '@tidewater', start: 1 });
    const deleted = await followed({ channel: '@3-videos-no-75', start: 2 });
    const { next } = await feed();
    expect((await onSubscriptions(service, organization.key, 'DELETE', `/${deleted}`)).status).toBe(204);
    expect((await feed()).results).toHaveLength(1);
    await steps.remove();
    const [videoId] = await published('@tidewater', [kept]);
    expect((await feed(`?after=${next}`)).results).toMatchObject([{ videoId }]);
  });

  it('states how many entries have expired and from where one can go on', async () => {
    const id = await followed({ channel: '@tidewater', start: 2 });
    const first = await feed('?limit=1');
    await steps.pass(WEEK - 60);
    const [videoId] = await published('@tidewater', [id]);
    await steps.pass(120);
    await steps.remove();
    for (const path of [`/feed?after=0`, `/subscriptions/${id}/results?after=0`, `/feed?after=${first.next}`]) {
      const expired = path.endsWith('=0') ? 2 : 1;
      expect(await refusal(path)).toEqual({ code: 'results_expired', expired, oldest: '0~2' });
      const rest = (await get(path.replace(/\?.*/, '?after=0~2'))).body as Page;
      expect(rest.results.map((entry) => entry.videoId)).toEqual([videoId]);
    }
    expect((await feed()).results).toMatchObject([{ videoId }]);
    expect(await loggedEntries()).toBe(1);
    expect(await service.app.get(SliceRepository).removeBatch()).toBe(0);
  });

  it('has the entries whose texts are kept, and tells a reader of the others once', async () => {
    const kept = await followed({ channel: '@tidewater', start: 2, keep: true });
    const other = await followed({ channel: '@3-videos-no-75', start: 2 });
    const [first, second] = (await feed()).results.map(({ videoId }) => videoId);
    const { next } = await feed('?limit=1');
    await steps.pass(WEEK);
    await steps.remove();
    const [third] = await published('@tidewater', [kept]);
    expect((await readOn(undefined, 1)).ids).toEqual([first, second, third]);
    const { oldest, ...told } = await refusal(`/feed?after=${next}`);
    expect(told).toEqual({ code: 'results_expired', expired: 2 });
    expect((await readOn(oldest, 1)).ids).toEqual([second, third]);
    expect((await readOn(oldest, 10)).ids).toEqual([second, third]);
    const results = async (id: string) => ((await get(`/subscriptions/${id}/results`)).body as Page).results;
    expect((await results(kept)).map(({ videoId }) => videoId)).toEqual([first, second, third]);
    expect((await get(`/subscriptions/${kept}/results?after=0`)).status).toBe(200);
    expect(await results(other)).toEqual([]);
    for (const path of [`/subscriptions/${other}/results`, '/feed?channel=@3-videos-no-75'])
      expect(linesOf((await get(path, { Accept: 'application/x-ndjson' })).text)).toMatchObject([{ type: 'summary' }]);
  });

  it('loses an entry with its text, and a reader there goes on without a second one', async () => {
    await followed({ channel: '@tidewater', start: 3, keep: true });
    await steps.pass(WEEK);
    await steps.remove();
    const [first, second, third] = (await feed()).results.map(({ videoId }) => videoId);
    const { next } = await feed('?limit=2');
    expect((await deleteFromLibrary(service, organization.key, `/videos/${second}`)).status).toBe(204);
    await steps.remove();
    expect((await readOn(undefined, 1)).ids).toEqual([first, third]);
    expect((await readOn(next, 1)).ids).toEqual([third]);
    expect((await deleteFromLibrary(service, organization.key, `/videos/${third}`)).status).toBe(204);
    await steps.remove();
    expect(await refusal(`/feed?after=${next}`)).toEqual({
      code: 'results_expired',
      expired: 1,
      oldest: expect.any(String),
    });
    expect((await readOn(undefined, 1)).ids).toEqual([first]);
  });

  it('loses the entries of a subscription that is deleted, although their texts are kept', async () => {
    const id = await followed({ channel: '@tidewater', start: 2, keep: true });
    expect((await onSubscriptions(service, organization.key, 'DELETE', `/${id}`)).status).toBe(204);
    await steps.remove();
    expect(await loggedEntries()).toBe(2);
    await steps.pass(WEEK);
    await steps.remove();
    expect(await loggedEntries()).toBe(0);
    expect((await libraryVideos(service, organization.key)).videos).toHaveLength(2);
  });

  it('is cleaned although the clock was ahead, and while the subscriptions of another organization are held', async () => {
    const id = await followed({ channel: '@tidewater', start: 1 });
    await service.query(`UPDATE organization_logs SET remove_at = clock_now() + interval '10 years'`);
    await published('@tidewater', [id]);
    const first = organization;
    organization = await service.organization();
    await followed({ channel: '@tidewater', start: 1 });
    await steps.pass(WEEK);
    const holding = new Client({ connectionString: service.databaseUrl });
    await holding.connect();
    try {
      await holding.query('BEGIN');
      expect((await holding.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE', [id])).rowCount).toBe(1);
      await steps.remove();
      expect(await loggedEntries()).toBe(0);
      organization = first;
      expect(await loggedEntries()).toBe(2);
    } finally {
      await holding.end();
    }
    await steps.remove();
    expect(await loggedEntries()).toBe(0);
  });

  it('keeps only what had room in the library', async () => {
    const full = await service.query(
      `INSERT INTO libraries (organization_id, bytes) VALUES ('${organization.id}', 1e12) RETURNING bytes`,
    );
    expect(full).toHaveLength(1);
    await followed({ channel: '@tidewater', start: 2, keep: true });
    expect((await feed()).results).toHaveLength(2);
    await steps.pass(WEEK);
    await steps.remove();
    const { text } = await get('/feed', { Accept: 'application/x-ndjson' });
    expect(linesOf(text)).toEqual([{ type: 'summary', next: '0~2' }]);
  });
});

describe('a reader at an entry that a restored database does not have', () => {
  it('is refused, and goes on without a gap from the cursor in the refusal', async () => {
    const id = await followed({ channel: '@tidewater', start: 5, kinds: ['video'] });
    const paths = ['/feed', `/subscriptions/${id}/results`];
    const restore = await backup(id);
    const before = await Promise.all(paths.map(async (path) => (await get(path)).body as Page));
    await published('@tidewater', [id], 3);
    const cursors = await Promise.all(paths.map(async (path) => ((await get(path)).body as Page).next));
    await restore();
    for (const uploads of [0, 4, 4]) {
      const added = uploads === 0 ? [] : await published('@tidewater', [id], uploads);
      expect(added).toHaveLength(uploads);
      for (const [index, path] of paths.entries()) {
        const { status, body } = await get(`${path}?after=${cursors[index]}`);
        expect([status, body.error.code]).toEqual([410, 'cursor_unknown']);
        const { results } = (await get(`${path}?limit=100&after=${body.error.oldest}`)).body as Page;
        const stored = `SELECT video_id FROM job_videos WHERE job_id = '${id}' AND sequence IS NOT NULL ORDER BY sequence`;
        const all = (await service.query(stored)).map(({ video_id }) => String(video_id));
        expect(results.map(({ videoId }) => videoId)).toEqual(all);
        for (const videoId of added) expect(all).toContain(videoId);
      }
    }
    // What was read before the backup is known.
    for (const [index, path] of paths.entries())
      expect((await get(`${path}?after=${before[index]?.next}`)).status).toBe(200);
  });
});

describe('a change of a subscription', () => {
  it('holds for what is decided from then on, and loses no pending upload', async () => {
    const id = await followed({ channel: '@tidewater', languages: ['en'], chunkSeconds: 60, labels: { user: '1' } });
    const [pending] = service.fakeYoutube.publish({ channel: '@tidewater' });
    await service.query(`SELECT subscription_check('${organization.id}', '${id}', 0)`);
    await steps.steps(1);
    const patch = (body: object) => onSubscriptions(service, organization.key, 'PATCH', `/${id}`, body);
    const changes = { languages: ['de', '*'], match: 'first', chunkSeconds: null, labels: { user: '2' } };
    const changed = await patch(changes);
    expect(changed.body).toMatchObject({
      request: { channel: '@tidewater', languages: ['de', '*'], match: 'first', chunkSeconds: null, checkMinutes: 60 },
      labels: { user: '2' },
      summary: { pending: 1 },
    });
    await steps.finish();
    expect((await feed()).results).toMatchObject([{ videoId: pending, labels: { user: '2' } }]);
    expect((await patch({ languages: null, kinds: null, labels: null })).body).toMatchObject({
      request: { languages: [], kinds: [] },
      labels: {},
    });
    expect((await patch({ kinds: ['film'] })).body.error.details).toMatchObject([{ field: 'kinds' }]);
    expect((await patch({})).body.error.code).toBe('invalid_request');
    const audit = (await get('/audit')).body.entries as { action: string; before: object; after: object }[];
    expect(audit.find(({ after }) => 'languages' in (after ?? {}) && 'match' in after)).toMatchObject({
      before: { languages: ['en'], labels: { user: '1' } },
      after: { languages: ['de', '*'], labels: { user: '2' } },
    });
  });

  it('does not make another request of the one that created it', async () => {
    const create = () =>
      onSubscriptions(service, organization.key, 'POST', '', { channel: '@tidewater' }, { 'Idempotency-Key': 'one' });
    const { id } = (await create()).body as { id: string };
    await onSubscriptions(service, organization.key, 'PATCH', `/${id}`, { languages: ['de'], labels: { a: 'b' } });
    expect((await create()).body).toMatchObject({ id, request: { languages: ['de'] } });
  });
});

describe('a repeated request', () => {
  it('gives the subscription that it has created, without YouTube, also when the channel has no longer the handle', async () => {
    const create = () =>
      onSubscriptions(
        service,
        organization.key,
        'POST',
        '',
        { channel: '@no-such-channel' },
        { 'Idempotency-Key': 'a' },
      );
    expect((await create()).status).toBe(404);
    const { id } = await follow(service, organization.key, { channel: '@tidewater' });
    await service.query(`UPDATE jobs SET idempotency_key = 'a', request = replace(request, '@tidewater', '@no-such-channel')
      WHERE id = '${id}'`);
    expect((await create()).body.id).toBe(id);
  });

  it('is the same although a field was added since then, and another one is a conflict', async () => {
    const send = (path: string, body: object) => {
      const headers = { Authorization: `Bearer ${organization.key}`, 'Content-Type': 'application/json' };
      return service.request('POST', path, { ...headers, 'Idempotency-Key': 'one' }, JSON.stringify(body));
    };
    for (const path of ['/subscriptions', '/jobs']) {
      const { id } = (await send(path, { channel: '@tidewater' })).body as { id: string };
      await service.query(
        `UPDATE jobs SET request = (request::jsonb - 'match' - 'labels' - 'include')::text WHERE id = '${id}'`,
      );
      expect((await send(path, { channel: '@tidewater', match: 'all' })).body.id).toBe(id);
      for (const other of [{ languages: ['de'] }, { labels: { user: '42' } }])
        expect((await send(path, { channel: '@tidewater', ...other })).body.error.code).toBe('idempotency_conflict');
      await service.query('DELETE FROM jobs');
    }
    const { id } = (await send('/jobs', { videos: ['tw-chowder_', 'tw-bread___'] })).body as { id: string };
    expect((await send('/jobs', { videos: ['tw-chowder_', 'tw-bread___'] })).body.id).toBe(id);
    expect((await send('/jobs', { videos: ['tw-chowder_', 'tw-other___'] })).body.error.code).toBe(
      'idempotency_conflict',
    );
  });
});

describe('labels', () => {
  it('are returned and filtered by, of jobs too, whatever a valid name is', async () => {
    const labels = { constructor: '1', ['__proto__']: '2', '0.a-b': `x${'é'.repeat(99)}` };
    const headers = { Authorization: `Bearer ${organization.key}`, 'Content-Type': 'application/json' };
    const create = (given: unknown) =>
      service.request('POST', '/jobs', headers, JSON.stringify({ channel: '@tidewater', labels: given }));
    const { body: job } = await create(labels);
    expect(job.labels).toEqual(labels);
    const jobsWith = async (label: string) =>
      (await get(`/jobs?label=${encodeURIComponent(label)}`)).body.jobs as { id: string }[];
    expect((await jobsWith('constructor:1')).map(({ id }) => id)).toEqual([job.id]);
    expect(await jobsWith('constructor:2')).toEqual([]);
    const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`a${index}`, 'b']));
    for (const wrong of [[], 'a:b', { A: 'b' }, { a: '' }, { a: 1 }, { a: 'x'.repeat(101) }, { a: '\0' }, eleven]) {
      const refused = await create(wrong);
      expect([refused.status, refused.body.error.details]).toMatchObject([400, [{ field: 'labels' }]]);
    }
  });
});

describe('the channel of a new subscription', () => {
  it('is looked up first, and one that does not exist is 404 and creates nothing', async () => {
    const created = await follow(service, organization.key, { channel: '@tidewater' });
    expect(created).toMatchObject({ channel: { handle: '@tidewater' }, startFound: null });
    const unknown = await onSubscriptions(service, organization.key, 'POST', '', { channel: '@no-such-channel-42' });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'channel_not_found']);
    expect((await get('/subscriptions')).body.subscriptions).toHaveLength(1);
  });
});

import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { VideoKind } from '../../src/domain/transcript.js';
import { FOG_SIGNAL } from '../fake-youtube/catalogue/other-channels.js';
import { LONG, PRIVATE, SATURDAY, WITH_GAPS } from '../fake-youtube/catalogue/playlists.js';
import { until } from '../harness/until.js';
import { createJob, linesOf, postJob } from './job-requests.js';
import { SliceSteps } from './slice-steps.js';

/** Slices run when a test runs them. */
let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0, JOBS_PER_ORGANIZATION: 100 } });
});
afterAll(() => steps.service.close());
afterEach(() => steps.reset());

/** A connection of its own to the database. */
async function connect(): Promise<Client> {
  const client = new Client({ connectionString: steps.service.databaseUrl });
  await client.connect();
  return client;
}

/** Stores a failed video as a slice does. */
async function commit(client: Client, id: string, claim: string, position: number): Promise<void> {
  const videos = [{ position, state: 'failed', length: 2, bytes: 2, crc: 0 }];
  const slice = { fetched: 0, videos, setbacks: 0, restart_list: false, delay_seconds: 0 };
  await client.query('SELECT FROM job_commit_slice($1, $2, $3, $4, 0, 0)', [
    id,
    claim,
    JSON.stringify(slice),
    Buffer.alloc(2),
  ]);
}

/** Whether a statement of another connection waits for a lock. */
async function isWaiting(): Promise<boolean> {
  const statement = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  return (await steps.service.query(statement)).length > 0;
}

const idsOf = (entries: readonly { entry: { videoId: string } }[]): string[] =>
  entries.map(({ entry: { videoId } }) => videoId);
/** An ID of a video that does not exist. */
const unknownId = (number: number): string => `x${String(number).padStart(10, '0')}`;

describe('a job of a playlist', () => {
  it('reads all of its pages in its order, and charges each transcript once', async () => {
    const run = await steps.job({ playlist: LONG.id });
    await steps.finish();
    const job = await run.verify();
    expect(job).toMatchObject({
      state: 'completed',
      channel: null,
      playlist: { id: LONG.id, title: LONG.title },
      request: { channel: null, playlist: LONG.id, videos: null },
      summary: { total: 230, pending: 0 },
    });
    const entries = await run.entries();
    expect(await run.videoIds()).toEqual(LONG.videos().map(({ id }) => id));
    expect(new Set(idsOf(entries))).toEqual(new Set(LONG.videos().map(({ id }) => id)));
    expect(entries[0]?.entry.metadata).toMatchObject({ channel: { name: expect.any(String) } });
  });

  it('has failed entries for deleted and private videos, and takes a limit', async () => {
    const run = await steps.job({ playlist: `https://www.youtube.com/playlist?list=${WITH_GAPS.id}`, limit: 3 });
    await steps.finish();
    expect((await run.verify()).summary).toMatchObject({ total: 3, succeeded: 2, failed: 1 });
  });

  it('goes on at any page, and reads the list again when its place is no longer accepted', async () => {
    const run = await steps.job({ playlist: LONG.id });
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ state: 'listing', summary: { total: 100 } });
    await steps.service.query(`UPDATE jobs SET continuation = 'refused' WHERE id = '${run.id}'`);
    await steps.steps(1);
    await steps.pass(30);
    await steps.finish();
    expect((await run.verify()).summary).toMatchObject({ total: 230, pending: 0 });
    expect(await run.videoIds()).toEqual(LONG.videos().map(({ id }) => id));
  });

  it.each([PRIVATE.id, 'PLnobodyhasaplaylistwiththisname'])(
    'that cannot be found (%s) has failed',
    async (playlist) => {
      const run = await steps.job({ playlist });
      await steps.finish();
      expect(await run.get()).toMatchObject({ state: 'failed', reason: 'playlist_not_found', playlist: null });
    },
  );
});

describe('a job of some kinds', () => {
  it('takes them from the whole list, and those of an unknown kind; limit counts what remains', async () => {
    const all = await steps.job({ channel: '@harbourlight' });
    await steps.steps(1);
    const rows = await steps.service.query(
      `SELECT video_id, upload::json ->> 'kind' AS kind FROM job_videos WHERE job_id = '${all.id}' ORDER BY position`,
    );
    const wanted = rows.filter(({ kind }) => kind === 'short' || kind === null).map((row) => String(row['video_id']));
    expect(wanted.length).toBeGreaterThan(1);
    expect(wanted.length).toBeLessThan(rows.length);
    const run = await steps.job({ channel: '@harbourlight', kinds: ['short'] });
    const limited = await steps.job({ channel: '@harbourlight', kinds: ['short'], limit: 1 });
    await steps.steps(2);
    expect(await run.videoIds()).toEqual(wanted);
    expect(await limited.videoIds()).toEqual(wanted.slice(0, 1));
    expect((await limited.get()).state).toBe('running');
  });

  it('fetches and charges exactly these of 300 uploads, and none of a kind or length that lists state', async () => {
    const { requests } = steps.service.fakeYoutube;
    const shorts = await steps.job({ channel: '@archive-300x61', kinds: ['short'] });
    await steps.finish();
    // Below the first page the list states no length of eight private and deleted ones either.
    const summary = { total: 60 + 8, succeeded: 60, fetched: 60 };
    expect(await shorts.verify()).toMatchObject({ state: 'completed', summary });
    // The list of Shorts is read for the first page, and below it those that are not longer than three minutes are taken.
    expect(requests.count({ kind: ['browse-uploads', 'browse-shorts', 'browse-continuation'] })).toBe(1 + 1 + 2);
    const live = await steps.job({ channel: '@archive-300x52', kinds: ['live', 'upcoming'] });
    await steps.finish();
    expect(await live.verify()).toMatchObject({ state: 'completed', summary: { total: 0 } });
  });

  it('keeps below the first page what can be of them by its length, for the requests of the list alone', async () => {
    const { fakeYoutube } = steps.service;
    const channel = '@fogsignalradio';
    const deep = fakeYoutube.publish({
      ...{ channel, as: 'short', count: 3, below: 150 },
      publishedAt: new Date(FOG_SIGNAL.uploads()[150]?.publishedAt ?? ''),
    });
    const newest = fakeYoutube.publish({ channel, as: 'short', count: 130 });
    const listed = async (kinds: VideoKind[]): Promise<string[]> => {
      await steps.service.query('DELETE FROM jobs');
      fakeYoutube.requests.clear();
      const run = await steps.job({ channel, kinds });
      await steps.steps(4);
      expect(fakeYoutube.requests.count({ kind: 'browse-shorts' })).toBe(1);
      expect(fakeYoutube.requests.count({ kind: 'browse-continuation' })).toBe(3);
      return (await run.videoIds()).sort();
    };
    const all = FOG_SIGNAL.uploads();
    const brief = all.filter(({ durationSeconds }) => durationSeconds <= 181);
    expect(brief.length).toBeGreaterThan(0);
    const idsOfAll = (videos: readonly { id: string }[]) => videos.map(({ id }) => id);
    expect(await listed(['short'])).toEqual([...newest, ...deep, ...idsOfAll(brief)].sort());
    // The first page has a hundred of the newest, which are known to be Shorts.
    expect(await listed(['video', 'live'])).toEqual([...newest.slice(100), ...deep, ...idsOfAll(all)].sort());
    expect(await listed([])).toHaveLength(363);
  });
});

describe('a job of videos', () => {
  it('reads them in their order, each once, without a list', async () => {
    const [first, second, third] = SATURDAY.videos().map(({ id }) => id);
    const videos = [`https://youtu.be/${third}`, first, third, `https://www.youtube.com/watch?v=${second}&t=9`, first];
    const run = await steps.job({ videos: videos.map(String) });
    expect(await run.get()).toMatchObject({
      state: 'queued',
      channel: null,
      playlist: null,
      request: { channel: null, playlist: null, videos: 3 },
      summary: { total: 3, pending: 3 },
    });
    const slice = await steps.claimed();
    expect([slice.job.state, slice.kind]).toEqual(['running', 'videos']);
    await steps.run(slice);
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total: 3, succeeded: 3 } });
    const entries = await run.entries();
    expect(idsOf(entries)).toEqual([third, first, second]);
    for (const { entry } of entries)
      expect(entry.metadata).toMatchObject({ title: expect.any(String), channel: { id: expect.any(String) } });
  });

  it('has the texts in the form that it was created with', async () => {
    const [video] = SATURDAY.videos();
    const form = { chunkSeconds: 600, include: ['description', 'chapters', 'tags'], match: 'first' } as const;
    const run = await steps.job({ videos: [video?.id ?? ''], languages: ['en', 'de'], ...form });
    await steps.finish();
    const [result] = await run.entries();
    expect(Object.keys(result?.entry.metadata ?? {})).toEqual(
      expect.arrayContaining(['description', 'chapters', 'tags']),
    );
    expect(Object.values(result?.entry.transcript ?? {})).toMatchObject([{ length: 1 }]);
  });

  it('can be 10,000, of which those up to the limit are read', async () => {
    const { key } = await steps.service.organization();
    const videos = Array.from({ length: 10_000 }, (_, index) => `https://www.youtube.com/watch?v=${unknownId(index)}`);
    const id = await createJob(steps.service, key, { videos });
    const { body } = await steps.service.get(`/jobs/${id}`, key);
    expect(body).toMatchObject({ state: 'queued', summary: { total: 10_000, pending: 10_000 } });
    expect(body.request.videos).toBe(10_000);
    // Neither slices nor lists of jobs carry the IDs.
    const [row] = await steps.service.query(`SELECT length(request) AS length FROM jobs WHERE id = '${id}'`);
    expect(row?.['length']).toBeLessThan(1_000);
    const limited = await createJob(steps.service, key, { videos, limit: 7 });
    expect((await steps.service.get(`/jobs/${limited}`, key)).body.summary.total).toBe(7);
    const tooMany = await postJob(steps.service, key, { videos: [...videos, unknownId(10_000)] });
    expect([tooMany.status, tooMany.body.error.details]).toEqual([
      400,
      [{ field: 'videos', message: 'videos must be a list of 1 to 10000 IDs or URLs of videos.' }],
    ]);
  });

  it('survives a process that is killed before its results are stored, and charges them once', async () => {
    const run = await steps.job({ videos: SATURDAY.videos().map(({ id }) => id) });
    await steps.read(await steps.claimed());
    await steps.pass(120);
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { total: 5 } });
  });
});

describe('the source of a job', () => {
  const FAULTS: [string, object, string, RegExp][] = [
    ['no source', { limit: 3 }, 'channel', /^One of channel, playlist and videos is required\.$/],
    ['two sources', { channel: '@a', playlist: LONG.id }, 'playlist', /cannot be combined with channel/],
    ['two others', { playlist: LONG.id, videos: [unknownId(1)] }, 'videos', /cannot be combined with playlist/],
    ['since of a playlist', { playlist: LONG.id, since: unknownId(1) }, 'since', /since belongs to channel/],
    ['kinds of videos', { videos: [unknownId(1)], kinds: ['video'] }, 'kinds', /kinds belongs to channel and playlist/],
    ['no video', { videos: [] }, 'videos', /1 to 10000/],
    ['a text for videos', { videos: unknownId(1) }, 'videos', /1 to 10000/],
    ['what is no video', { videos: [unknownId(1), 'https://example.com/a'] }, 'videos[1]', /must be the ID or the URL/],
    ['a mix', { playlist: 'RDabcdefghijk' }, 'playlist', /mix/],
    ['a playlist that is no text', { playlist: 7 }, 'playlist', /must be the ID or the URL of a playlist/],
    ['an unknown kind', { channel: '@a', kinds: ['clip'] }, 'kinds', /video, short, live, upcoming/],
  ];
  it.each(FAULTS)('is refused with %s', async (_name, body, field, message) => {
    const { key } = await steps.service.organization();
    const { status, body: response } = await postJob(steps.service, key, body);
    expect([status, response.error.code]).toEqual([400, 'invalid_request']);
    expect(response.error.details).toEqual([{ field, message: expect.stringMatching(message) }]);
  });

  it('that is no reference to a playlist is 404', async () => {
    const { key } = await steps.service.organization();
    for (const playlist of ['@harbourlight', 'https://example.com/playlist?list=x', `PL\u0000${LONG.id}`]) {
      const { status, body } = await postJob(steps.service, key, { playlist });
      expect([status, body.error.code]).toEqual([404, 'playlist_not_found']);
    }
  });

  it('has a size of at most 1 MiB', async () => {
    const { key } = await steps.service.organization();
    const text = 'x'.repeat(1024 * 1024);
    expect((await postJob(steps.service, key, { videos: [text] })).status).toBe(413);
  });

  it.each([
    [{ channel: '@tidewater' }, { channel: '@tidewater', kinds: ['video'] }],
    [{ playlist: LONG.id }, { channel: '@tidewater' }],
    [{ videos: [unknownId(1), unknownId(2)] }, { videos: [unknownId(2), unknownId(1)] }],
  ])('is a part of what an idempotency key stands for: %j', async (body, other) => {
    const { key } = await steps.service.organization();
    const header = { 'Idempotency-Key': 'the-same' };
    const first = await postJob(steps.service, key, body, header);
    expect((await postJob(steps.service, key, body, header)).body.id).toBe(first.body.id);
    const { status, body: refused } = await postJob(steps.service, key, other, header);
    expect([status, refused.error.code]).toEqual([409, 'idempotency_conflict']);
  });
});

describe('the sequence of the results', () => {
  it('is that of the commits: a reader between two of them misses nothing', async () => {
    const { service } = steps;
    const run = await steps.job({ playlist: LONG.id, limit: 75 });
    await steps.steps(1);
    const { key } = run.organization;
    const read: { cursor: string; position: number }[] = [];
    for (let cursor = '0'; read.length < 75;) {
      await steps.step();
      const lines = linesOf(
        (
          await service.get(`/jobs/${run.id}/results?after=${cursor}`, key, {
            Accept: 'application/x-ndjson',
          })
        ).text,
      );
      read.push(...(lines.slice(0, -1) as typeof read));
      cursor = read.at(-1)?.cursor ?? '0';
    }
    expect(read.map(({ cursor }) => parseInt(cursor, 10))).toEqual(read.map((_, index) => index + 1));
    expect(new Set(read.map(({ position }) => position)).size).toBe(75);
  });

  it('has no gap that a reader can pass while two commits are in flight', async () => {
    const run = await steps.job({ videos: [unknownId(1), unknownId(2)] });
    const { claim } = await steps.claimed();
    const [first, second] = await Promise.all([connect(), connect()]);
    const next = async (): Promise<unknown> =>
      (await steps.service.get(`/jobs/${run.id}/results`, run.organization.key)).body.next;
    try {
      await first.query('BEGIN');
      await commit(first, run.id, claim, 2);
      // As if another process could already have the next slice.
      await first.query('UPDATE jobs SET claim = $2 WHERE id = $1', [run.id, claim]);
      const later = commit(second, run.id, claim, 1);
      await until(isWaiting);
      expect(await next()).toBe('0');
      await first.query('COMMIT');
      await later;
    } finally {
      await Promise.all([first.end(), second.end()]);
    }
    const statement = `SELECT position, sequence FROM job_videos WHERE job_id = '${run.id}' ORDER BY position`;
    expect(await steps.service.query(statement)).toEqual([
      { position: 1, sequence: 2 },
      { position: 2, sequence: 1 },
    ]);
  });
});

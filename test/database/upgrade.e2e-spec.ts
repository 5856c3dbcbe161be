import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { migrateDatabase } from '../../src/database/data-source.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import { generateKey, hashKey } from '../../src/organizations/api-key.js';
import { GzipMember } from '../../src/transcripts/cache/gzip-member.js';
import { channelByPath } from '../fake-youtube/catalogue/catalogue.js';
import { waitForJob } from '../jobs/job-requests.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { onSubscriptions } from '../subscriptions/subscription-requests.js';
import { SchemaFolder } from './schema-folder.js';
import { runQuery } from './test-database.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-upgrade-42';
const KEY = generateKey();
const ENTRY = { videoId: 'storedvid01', ok: false, error: { code: 'video_private' } };
const WEBHOOK = `whk_${'0'.repeat(24)}`;
const FINISHED = `job_${'finished'.padStart(22, '0')}`;
const UNFINISHED = `job_${'unfinished'.padStart(22, '0')}`;
const OTHER = { videoId: 'storedvid03', ok: false, error: { code: 'video_unavailable' } };
const STORED = GzipMember.join([JSON.stringify(ENTRY)]);
const STORED_OTHER = GzipMember.join([JSON.stringify(OTHER)]);
const bytes = (buffer: Buffer): string => `'\\x${buffer.toString('hex')}'`;

/**
 * Rows of every table as the first version stores them: what a customer has, with a call and a job that its process left
 * unfinished. Every migration runs on them.
 */
const ROWS = `
  INSERT INTO organizations (id, name, plan, monthly_limit) VALUES ('org_old', 'Saltmarsh', 'pro', 12);
  INSERT INTO api_keys (id, organization_id, name, prefix, hash)
    VALUES ('key_old', 'org_old', 'Server', 'ctk_old', ${bytes(hashKey(KEY))});
  INSERT INTO audit_entries (actor, action, organization_id) VALUES ('cli', 'organization.create', 'org_old');
  INSERT INTO quota_periods (organization_id, period_start, used)
    VALUES ('org_old', date_trunc('month', now() AT TIME ZONE 'UTC')::date, 7);
  INSERT INTO quota_reservations (id, organization_id, key_id, request_id, channel_id, period_start, required, created_at,
                                  leased_until, settled_at, fetched)
    SELECT gen_random_uuid(), 'org_old', 'key_old', 'old', 'UC', date_trunc('month', now() AT TIME ZONE 'UTC')::date,
           required, now(), now() - interval '1 second', settled_at, fetched
      FROM (VALUES (8, now(), 7), (5, NULL, NULL)) call (required, settled_at, fetched);
  INSERT INTO quota_open_reservations (organization_id, reservation_id, period_start, required, leased_until)
    SELECT organization_id, id, period_start, required, leased_until FROM quota_reservations WHERE settled_at IS NULL;
  INSERT INTO webhooks (id, organization_id, url, secret, created_at)
    VALUES ('${WEBHOOK}', 'org_old', 'https://hooks.example.com/', '\\x00', now());
  INSERT INTO webhook_deliveries (webhook_id, type, data, state, created_at, attempts)
    VALUES ('${WEBHOOK}', 'job.completed', '{}', 'succeeded', now(), 1);
  INSERT INTO jobs (id, organization_id, key_id, reference, languages, video_limit, since, on_quota, results_seconds, state, created_at,
                    started_at, listed_at, finished_at, expires_at, next_run_at, claim, claimed_until, total, failed)
    VALUES ('${FINISHED}', 'org_old', 'key_old', '@gone', '{en}', 9, 'hl-dinghy__', 'pause', 3600, 'completed', now(), now(), now(), now(),
            now() + interval '1 hour', NULL, NULL, NULL, 2, 2),
           ('${UNFINISHED}', 'org_old', 'key_old', '@2-videos-no-931', '{}', NULL, NULL, 'pause', 3600, 'queued', now(), now(), NULL, NULL,
            NULL, now(), gen_random_uuid(), now() - interval '1 second', 0, 0);
  INSERT INTO job_queues (organization_id, turn_at) VALUES ('org_old', now());
  INSERT INTO job_counts (state, jobs, stored_bytes) VALUES ('completed', 1, 0), ('queued', 1, 0);
  INSERT INTO job_videos (job_id, position, video_id, upload, state, entry, entry_bytes, entry_crc)
    VALUES ('${FINISHED}', 1, 'storedvid01', '{}', 'failed', ${bytes(STORED.deflated)}, ${STORED.jsonBytes},
            ${STORED.crc32}),
           ('${FINISHED}', 2, 'storedvid03', '{}', 'failed', ${bytes(STORED_OTHER.deflated)}, ${STORED_OTHER.jsonBytes},
            ${STORED_OTHER.crc32})`;

let service: TestService;

beforeAll(async () => {
  service = await startService({
    environment: { ADMIN_TOKEN },
    databaseUrl: async (url) => {
      const before = await SchemaFolder.ofTheFirstVersion();
      await migrateDatabase(url, before.path);
      await before.delete();
      await runQuery(url, ROWS);
      return url;
    },
  });
  // On a busy machine the deadline for the database ends the first call.
  await until(async () => (await service.get('/usage', KEY)).status === 200);
});
afterAll(() => service.close());

const verifiedUsage = async (): Promise<unknown> => {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  return (await service.request('GET', '/admin/organizations/org_old/usage?verify=true', headers)).body;
};

it('a filled database is upgraded when the service starts, and what was stored is read', async () => {
  expect((await service.get(`/jobs/${FINISHED}/results`, KEY)).body).toMatchObject({
    results: [ENTRY, OTHER],
    next: null,
    job: { state: 'completed', summary: { total: 2, failed: 2 } },
  });
  expect((await service.get(`/jobs/${FINISHED}/results?after=1`, KEY)).body).toMatchObject({ results: [OTHER] });
  expect((await service.get(`/jobs/${FINISHED}`, KEY)).body.request).toEqual({
    ...{ channel: '@gone', playlist: null, videos: null, languages: ['en'], match: 'all', kinds: [], include: [] },
    ...{ tracks: 'any', publishedAfter: null },
    ...{ chunkSeconds: null, limit: 9, since: 'hl-dinghy__', onQuota: 'pause', labels: {}, keep: false },
  });
  const { deliveries } = (await service.get(`/webhooks/${WEBHOOK}/deliveries`, KEY)).body;
  // The newest ones are of the other job.
  expect(deliveries.at(-1)).toMatchObject({ type: 'job.completed', state: 'succeeded' });
});

it('a slice that a process left unfinished is repeated, and a call that it left is not charged', async () => {
  expect(await waitForJob(service, KEY, UNFINISHED)).toMatchObject({ summary: { total: 2, fetched: 2 } });
  expect((await service.get('/channels/@2-videos-no-932/transcripts', KEY)).status).toBe(200);
  expect((await service.get('/channels/@2-videos-no-933/transcripts', KEY)).status).toBe(402);
  expect(await verifiedUsage()).toMatchObject({ used: 11, reserved: 0, verification: { exact: true } });
});

it('a running process goes on while a further version adds columns, an index and a changed function', async () => {
  const { id, key } = await service.organization({ monthlyLimit: 100 });
  const next = await SchemaFolder.ofTheService();
  const tables = ['organizations', 'quota_reservations', 'jobs', 'job_videos', 'webhooks'];
  await next.add(tables.map((table) => `ALTER TABLE ${table} ADD added text NOT NULL DEFAULT '';\n`).join(''));
  await next.add(`-- no transaction
DROP INDEX CONCURRENTLY IF EXISTS jobs_added;
CREATE INDEX CONCURRENTLY jobs_added ON jobs (added);
`);
  await next.change('functions/quota.sql', (text) => `${text}-- A further version.\n`);
  let migrated = false;
  const migration = migrateDatabase(service.databaseUrl, next.path).finally(() => (migrated = true));
  let calls = 0;
  // Before, meanwhile, and one afterwards.
  for (let last = false; !last;) {
    last = migrated;
    expect((await service.get(`/channels/@1-videos-no-${(calls += 1)}/transcripts`, key)).status).toBe(200);
  }
  await migration;
  await next.delete();
  expect((await service.get('/usage', key)).body).toMatchObject({ used: calls, reserved: 0 });
  expect((await service.get(`/jobs/${FINISHED}`, KEY)).body).toMatchObject({ state: 'completed' });
  expect(await service.query(`SELECT added FROM organizations WHERE id = '${id}'`)).toEqual([{ added: '' }]);
});

describe('subscriptions that each read their channel', () => {
  const HANDLE = '@3-videos-no-41';
  const { id: channelId = '', uploads = () => [] } = channelByPath(`/${HANDLE}`) ?? {};
  const [newest = '', second = '', third = ''] = uploads().map(({ id }) => id);
  const entry = GzipMember.join([JSON.stringify({ ...ENTRY, videoId: newest })]);
  const idOf = (name: string): string => `sub_${name.padStart(22, '0')}`;

  /** By name: what it has of the three uploads, in the order in which it found them. */
  const FOLLOWERS = {
    current: { third: 'seen', second: 'seen', newest: 'failed' },
    waiting: { third: 'seen', second: 'seen', newest: 'pending' },
    behind: { third: 'seen', second: 'seen' },
    paused: { third: 'seen' },
    new: {},
  };

  const rowsOf = (name: keyof typeof FOLLOWERS): string => {
    const states: Partial<Record<'third' | 'second' | 'newest', string>> = FOLLOWERS[name];
    const videos = { third, second, newest };
    const seen = Object.keys(states).length;
    const [isNew, isPaused] = [name === 'new', name === 'paused'];
    const counts = [states.newest === undefined ? 0 : 1, states.newest === 'failed' ? 1 : 0];
    const request = JSON.stringify({
      channel: HANDLE,
      languages: [],
      match: 'all',
      kinds: [],
      include: [],
      chunkSeconds: null,
      checkMinutes: 60,
      start: 'now',
    });
    return `
      INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, state, reason, created_at, channel_id, channel, next_run_at,
                        check_seconds, next_check_at, checked_at, seen_position, seen_at, sees_all, last_position, total, failed)
        VALUES ('${idOf(name)}', 'org_old', 'key_old', '${request}', 604800, '${isPaused ? 'paused' : 'running'}',
                ${isPaused ? "'paused_by_caller'" : 'NULL'}, now() - interval '1 ${isNew ? 'second' : 'year'}',
                ${isNew ? 'NULL, NULL' : `'${channelId}', '${JSON.stringify({ id: channelId, name: 'Old', handle: HANDLE })}'`},
                ${isPaused ? 'NULL' : 'now()'}, 3600, now(), ${isNew ? 'NULL, NULL, NULL' : `now(), ${seen}, now() - interval '1 hour'`},
                ${!isNew}, ${seen}, ${counts.join()});
      ${Object.entries(states)
        .map(
          ([video, state], index) => `
      INSERT INTO job_videos (job_id, position, video_id, upload, state, sequence, decided_at, entry, entry_bytes, entry_crc)
        VALUES ('${idOf(name)}', ${index + 1}, '${videos[video as keyof typeof videos]}', '{}', '${state}', ${
          state === 'failed'
            ? `1, now(), ${bytes(entry.deflated)}, ${entry.jsonBytes}, ${entry.crc32}`
            : 'NULL, NULL, NULL, NULL, NULL'
        });`,
        )
        .join('')}`;
  };

  let followed: TestService;
  beforeAll(async () => {
    followed = await startService({
      environment: { RATE_LIMIT_PER_MINUTE: 0 },
      databaseUrl: async (url) => {
        const before = await SchemaFolder.ofTablesBefore('feed');
        await migrateDatabase(url, before.path);
        await before.delete();
        await runQuery(
          url,
          `INSERT INTO organizations (id, name, plan) VALUES ('org_old', 'Saltmarsh', 'pro');
           INSERT INTO api_keys (id, organization_id, name, prefix, hash)
             VALUES ('key_old', 'org_old', 'Server', 'ctk_old', ${bytes(hashKey(KEY))});
           ${(Object.keys(FOLLOWERS) as (keyof typeof FOLLOWERS)[]).map(rowsOf).join('')}`,
        );
        return url;
      },
    });
    await until(async () => (await followed.get('/usage', KEY)).status === 200);
  });
  afterAll(() => followed.close());

  const feedOf = async (name: keyof typeof FOLLOWERS): Promise<string[]> => {
    const { results } = (await followed.get(`/subscriptions/${idOf(name)}/results`, KEY)).body;
    return (results as { videoId: string }[]).map(({ videoId }) => videoId);
  };
  const checkedAt = async (name: keyof typeof FOLLOWERS): Promise<unknown> =>
    (await followed.get(`/subscriptions/${idOf(name)}`, KEY)).body.checkedAt;

  it('share one source and go on: each gets what it had not got, once', async () => {
    await onSubscriptions(followed, KEY, 'PATCH', `/${idOf('paused')}`, { state: 'active' });
    await until(async () => (await feedOf('paused')).length === 2 && (await checkedAt('new')) !== null);
    await until(async () => (await feedOf('behind')).length === 1 && (await feedOf('waiting')).length === 1);
    for (const name of ['current', 'waiting', 'behind'] as const) expect(await feedOf(name)).toEqual([newest]);
    expect([...(await feedOf('paused'))].sort()).toEqual([newest, second].sort());
    expect(await feedOf('new')).toEqual([]);
    expect(await followed.query('SELECT id FROM sources')).toEqual([{ id: channelId }]);
    expect(await followed.query('SELECT job_id FROM job_videos GROUP BY job_id, video_id HAVING count(*) > 1')).toEqual(
      [],
    );
  });

  it('deliver what is uploaded afterwards once each', async () => {
    const [later = ''] = followed.fakeYoutube.publish({ channel: HANDLE });
    await until(async () => (await onSubscriptions(followed, KEY, 'POST', `/${idOf('current')}/check`)).status === 202);
    for (const name of Object.keys(FOLLOWERS) as (keyof typeof FOLLOWERS)[])
      await until(async () => (await feedOf(name)).filter((id) => id === later).length === 1);
  });
});

it('stored entries of subscriptions get marks and a place in the log, and a reader goes on from a cursor of version 1.0', async () => {
  const [one, two, deleted] = ['one', 'two', 'gone'].map((name) => `sub_${name.padStart(22, '0')}`);
  const request = JSON.stringify({ channel: '@tidewater', languages: [], match: 'all', kinds: [], checkMinutes: 60 });
  const entryOf = (videoId: string) => GzipMember.join([JSON.stringify({ videoId, ok: false, error: {} })]);
  /** The entries by when they became final; those of the second subscription begin after expired ones. */
  const entries: [id: unknown, position: number, sequence: number, minute: number][] = [
    [one, 1, 1, 1],
    [two, 9, 8, 2],
    [one, 3, 2, 3],
    [two, 7, 9, 3],
    [deleted, 1, 1, 4],
    [one, 2, 3, 5],
  ];
  const videoIdOf = (id: unknown, sequence: number): string => `${String(id).slice(-3)}-entry-${sequence}`;
  const values = entries.map(([id, position, sequence, minute]) => {
    const { deflated, jsonBytes, crc32 } = entryOf(videoIdOf(id, sequence));
    const at = `now() - interval '1 day' + interval '${minute} minutes'`;
    const facts = `'${videoIdOf(id, sequence)}', '{}', 'failed', ${bytes(deflated)}, ${jsonBytes}, ${crc32}`;
    return `('${String(id)}', ${position}, ${facts}, ${sequence}, ${at})`;
  });
  const jobs = [one, two, deleted].map((id, index) => {
    const counts = [3, 9, 1][index] ?? 0;
    const [expired, end] = [index === 1 ? 7 : 0, index === 2 ? 'now()' : 'NULL'];
    return `('${id}', 'org_old', 'key_old', '${request}', 604800, 'running', now() - interval '2 days', ${counts}, ${counts}, 3600,
      now() + interval '1 hour', 9, 9, ${expired}, ${end})`;
  });
  const upgraded = await startService({
    environment: { JOB_CONCURRENCY: 0 },
    databaseUrl: async (url) => {
      const before = await SchemaFolder.ofTablesBefore('feed');
      await migrateDatabase(url, before.path);
      await before.delete();
      await runQuery(
        url,
        `INSERT INTO organizations (id, name, plan) VALUES ('org_old', 'Saltmarsh', 'pro');
         INSERT INTO api_keys (id, organization_id, name, prefix, hash)
           VALUES ('key_old', 'org_old', 'Server', 'ctk_old', ${bytes(hashKey(KEY))});
         INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, state, created_at, total, failed, check_seconds,
                           next_check_at, last_position, seen_position, expired_sequence, deleted_at)
           VALUES ${jobs.join()};
         INSERT INTO job_videos (job_id, position, video_id, upload, state, entry, entry_bytes, entry_crc, sequence, decided_at)
           VALUES ${values.join()}`,
      );
      return url;
    },
  });
  try {
    await until(async () => (await upgraded.get('/usage', KEY)).status === 200);
    const read = async (path: string): Promise<{ ids: string[]; next: string }> => {
      const { status, body } = await upgraded.get(path, KEY);
      expect([path, status]).toEqual([path, 200]);
      return { ids: (body.results as { videoId: string }[]).map(({ videoId }) => videoId), next: body.next as string };
    };
    const logged = entries.filter(([id]) => id !== deleted).map(([id, , sequence]) => videoIdOf(id, sequence));
    expect((await read('/feed')).ids.sort()).toEqual([...logged].sort());
    const [first, second, , , last] = (await read('/feed')).ids;
    expect([first, second, last]).toEqual([logged[0], logged[1], logged.at(-1)]);
    // With the cursor of 1.0, then with that of the answer.
    const page = await read(`/subscriptions/${one}/results?after=1&limit=1`);
    expect(page).toEqual({ ids: [videoIdOf(one, 2)], next: expect.stringMatching(/^2\.[\w-]{8}$/) });
    const rest = await read(`/subscriptions/${one}/results?after=${page.next}`);
    expect(rest.ids).toEqual([videoIdOf(one, 3)]);
    expect((await read(`/subscriptions/${one}/results?after=3`)).next).toBe(rest.next);
    expect((await read(`/subscriptions/${two}/results?after=7`)).ids).toEqual([videoIdOf(two, 8), videoIdOf(two, 9)]);
    const expired = await upgraded.get(`/subscriptions/${two}/results?after=5`, KEY);
    expect(expired.body.error).toMatchObject({ code: 'results_expired', oldest: '0~7', expired: 2 });
    expect((await upgraded.get(`/subscriptions/${one}/results?after=4`, KEY)).body.error.code).toBe('cursor_unknown');
  } finally {
    await upgraded.close();
  }
});

it('entries whose texts are kept stay in the feed, and a result whose entry was removed before it is removed', async () => {
  const id = `sub_${'kept'.padStart(22, '0')}`;
  const ids = ['keptvideo01', 'latevideo02', 'lostvideo03'];
  const { deflated, jsonBytes, crc32 } = GzipMember.join([JSON.stringify({ ok: true })]);
  const entry = `${bytes(deflated)}, ${jsonBytes}, ${crc32}`;
  const videos = ids.map(
    (videoId, index) => `('${id}', ${index + 1}, '${videoId}', '{}', 'succeeded', false, ${entry}, ${index + 1},
    'mark000${index + 1}', now() - interval '8 days')`,
  );
  const logged = ids.slice(0, 2).map(
    (videoId, index) => `('org_old', ${index + 1}, 'mark000${index + 1}', '${id}', ${index + 1},
    now() - interval '1 day', '{"videoId": "${videoId}"}')`,
  );
  const upgraded = await startService({
    environment: { JOB_CONCURRENCY: 0 },
    databaseUrl: async (url) => {
      const before = await SchemaFolder.ofTablesBefore('kept-entries');
      await migrateDatabase(url, before.path);
      await before.delete();
      await runQuery(
        url,
        `INSERT INTO organizations (id, name, plan, keeps) VALUES ('org_old', 'Saltmarsh', 'pro', true);
         INSERT INTO api_keys (id, organization_id, name, prefix, hash)
           VALUES ('key_old', 'org_old', 'Server', 'ctk_old', ${bytes(hashKey(KEY))});
         INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, state, created_at, total, succeeded, fetched, check_seconds,
                           last_position, stored_bytes, remove_at)
           VALUES ('${id}', 'org_old', 'key_old', '{"channel": "@tidewater", "keep": true, "checkMinutes": 60}', 604800, 'running',
                   now() - interval '9 days', 3, 3, 3, 3600, 3, ${3 * deflated.length}, now());
         INSERT INTO job_videos (job_id, position, video_id, upload, state, cached, entry, entry_bytes, entry_crc, sequence, mark, decided_at)
           VALUES ${videos.join()};
         INSERT INTO log_entries (organization_id, sequence, mark, job_id, position, expires_at, event) VALUES ${logged.join()};
         INSERT INTO organization_logs (organization_id, last_sequence, remove_at) VALUES ('org_old', 3, now());
         INSERT INTO library_texts (organization_id, video_id, languages, choices, labels, published_at, video, entry, entry_bytes, entry_crc,
                                    stored_bytes, kept_at)
           VALUES ('org_old', '${ids[0]}', '{en}', '{}', '{}', now(), '{}', ${entry}, 1, now())`,
      );
      return url;
    },
  });
  try {
    while ((await upgraded.app.get(SliceRepository).removeBatch()) > 0);
    const { next } = (await upgraded.get('/feed', KEY)).body as { next: string };
    expect(next).toBe('1.mark0001~2');
    const stored = 'SELECT video_id, stored_bytes::int, expired_sequence FROM job_videos JOIN jobs ON id = job_id';
    expect(await upgraded.query(stored)).toEqual([
      { video_id: ids[0], stored_bytes: deflated.length, expired_sequence: 3 },
    ]);
  } finally {
    await upgraded.close();
  }
});

import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { migrateDatabase } from '../../src/database/data-source.js';
import { generateKey, hashKey } from '../../src/organizations/api-key.js';
import { GzipMember } from '../../src/transcripts/cache/gzip-member.js';
import { waitForJob } from '../jobs/job-requests.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
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
    ...{ chunkSeconds: null, limit: 9, since: 'hl-dinghy__', onQuota: 'pause' },
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

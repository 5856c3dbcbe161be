import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Environment } from '../../src/config/environment.js';
import { hashKey, generateKey } from '../../src/organizations/api-key.js';
import { generateSecret, secretText, WebhookSecrets } from '../../src/webhooks/webhook-secrets.js';
import { migrateDatabase } from '../../src/database/data-source.js';
import { runQuery } from '../database/test-database.js';
import { SchemaFolder } from '../database/schema-folder.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { idOf, startReceiver, verified, WEBHOOK_SECRET_KEY, type Receiver } from './receiver.js';

const KEY = generateKey();
const ID = `whk_${'0'.repeat(24)}`;
const SECRET = generateSecret();
const WAITING = `msg_${'1'.repeat(32)}`;
const hex = (bytes: Buffer): string => `'\\x${bytes.toString('hex')}'`;

let service: TestService;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  const secrets = new WebhookSecrets(Object.assign(new Environment(), { WEBHOOK_SECRET_KEY }));
  const rows = `
    INSERT INTO organizations (id, name, plan) VALUES ('org_old', 'Saltmarsh', 'pro');
    INSERT INTO api_keys (id, organization_id, name, prefix, hash) VALUES ('key_old', 'org_old', 'Server', 'ctk_old', ${hex(hashKey(KEY))});
    INSERT INTO webhooks (id, organization_id, url, secret, created_at, healthy, claim, claimed_until)
      VALUES ('${ID}', 'org_old', '${receiver.url}', ${hex(secrets.encrypt(ID, SECRET))}, now(), true, gen_random_uuid(), now() + interval '1 minute');
    INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, created_at, state, check_seconds, channel, total, succeeded, failed, cached,
                      listed_at, seen_position)
      VALUES ('sub_old', 'org_old', 'key_old', '{}', 3600, now(), 'paused', 3600, '{"id":"UC","name":"\\u0000","handle":null}', 3, 1, 2, 1, NULL, 0);
    INSERT INTO job_videos (job_id, position, video_id, upload, state, cached, entry, entry_bytes, entry_crc, sequence, mark, decided_at)
      SELECT 'sub_old', n, 'video-' || n, CASE n WHEN 1 THEN '{"title":"First","publishedAt":null}' ELSE '{"title":"\\ud800"}' END,
             CASE n WHEN 1 THEN 'succeeded' ELSE 'failed' END, CASE n WHEN 1 THEN true END, '\\x00', 1, 0, n, 'AAAAAAA' || n, now()
        FROM generate_series(1, 3) n;
    INSERT INTO organization_logs (organization_id, last_sequence) VALUES ('org_old', 3);
    INSERT INTO log_entries (organization_id, sequence, mark, job_id, position, expires_at)
      SELECT 'org_old', sequence, mark, job_id, position, now() + interval '1 hour' FROM job_videos;
    INSERT INTO webhook_deliveries (id, webhook_id, type, data, created_at, next_attempt_at)
      VALUES ('${WAITING}', '${ID}', 'upload.failed', '{"subscriptionId":"sub_old","videoId":"video-2","code":"no_captions"}', now(), now());`;
  service = await startService({
    environment: { WEBHOOK_ALLOW_PRIVATE: true, WEBHOOK_SECRET_KEY },
    databaseUrl: async (url) => {
      const before = await SchemaFolder.ofTablesBefore('webhooks');
      await migrateDatabase(url, before.path);
      await before.delete();
      await runQuery(url, rows);
      return url;
    },
  });
});
afterAll(async () => {
  await service.close();
  await receiver.close();
});

it('a delivery that waited is sent after the upgrade with its ID, and stored entries can be sent again', async () => {
  await until(() => receiver.received.length === 1);
  const [first] = receiver.received.splice(0);
  if (!first) throw new Error('Nothing was received.');
  expect(idOf(first)).toBe(WAITING);
  const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' };
  await until(
    async () => (await service.get(`/webhooks/${ID}/deliveries`, KEY)).body.deliveries[0].state === 'succeeded',
  );
  expect((await service.get(`/webhooks/${ID}/deliveries`, KEY)).body.deliveries).toMatchObject([
    { id: WAITING, eventId: WAITING, subscriptionId: 'sub_old', videoId: 'video-2' },
  ]);
  expect((await service.request('POST', `/webhooks/${ID}/replay`, headers, '{"after":"0"}')).status).toBe(202);
  await until(() => receiver.received.length === 2);
  expect(receiver.received.map((message) => verified(message, secretText(SECRET)))).toMatchObject([
    {
      type: 'upload.ready',
      data: { subscriptionId: 'sub_old', labels: {}, channel: null, videoId: 'video-1', title: 'First', code: null },
    },
    {
      type: 'upload.failed',
      data: { subscriptionId: 'sub_old', videoId: 'video-2', title: null, code: 'no_captions' },
    },
  ]);
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { WebhookDeliverer } from '../../src/webhooks/webhook-deliverer.js';
import { WebhookHousekeeping } from '../../src/webhooks/webhook-housekeeping.js';
import { DatabaseClock } from '../database/database-clock.js';
import { startService, type TestService } from '../harness/service.js';
import { WEBHOOK_SECRET_KEY, idOf, startReceiver, verified, type Receiver } from './receiver.js';
import { Environment } from '../../src/config/environment.js';
import { hashKey, generateKey } from '../../src/organizations/api-key.js';
import { generateSecret, secretText, WebhookSecrets } from '../../src/webhooks/webhook-secrets.js';
import { migrateDatabase } from '../../src/database/data-source.js';
import { runQuery } from '../database/test-database.js';
import { SchemaFolder } from '../database/schema-folder.js';
import { until } from '../harness/until.js';

describe('many webhooks', () => {
  /** Indexes are deeper by a block or two; whatever reads each webhook reads far more. */
  const blocksMax = (few: number): number => 1.5 * few + 60;
  const CLAIM = 'SELECT * FROM webhook_claim(gen_random_uuid(), HEALTHY, 20, 5, 60)';

  const STATEMENTS = {
    'claim of healthy ones': CLAIM.replace('HEALTHY', 'true'),
    'claim of others': CLAIM.replace('HEALTHY', 'false'),
  };
  let service: TestService;
  let clock: DatabaseClock;

  beforeAll(async () => {
    service = await startService({ environment: { WEBHOOK_ALLOW_PRIVATE: true, WEBHOOK_SECRET_KEY } });
    clock = new DatabaseClock((statement) => service.query(statement));
    // The tests claim.
    await service.app.get(WebhookDeliverer).looks.stop();
  });
  afterAll(() => service.close());

  afterEach(async () => {
    await service.query('DELETE FROM webhooks');
    await clock.reset();
  });

  interface Added {
    organizations: number;
    each?: number;
    healthy?: string;
    host?: string;
  }

  /** Webhooks of new organizations, each with a delivery that is due. */
  async function add(
    name: string,
    { organizations, each = 1, healthy = 'false', host = `'${name}.example.com'` }: Added,
  ) {
    await service.query(`
    INSERT INTO organizations (id, name, plan) SELECT 'org_${name}_' || n, 'Many', 'pro' FROM generate_series(1, ${organizations}) n;
    INSERT INTO webhooks (id, organization_id, url, secret, created_at, healthy, confirmed, due_at)
      SELECT 'whk_${name}_' || n || '_' || m, 'org_${name}_' || n, 'https://' || ${host} || '/', '', clock_now(), ${healthy}, ${healthy},
             clock_now() - interval '1 hour' + (n * 10 + m) * interval '1 millisecond'
        FROM generate_series(1, ${organizations}) n, generate_series(1, ${each}) m;
    INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
      SELECT id, 'job.completed', '{}', due_at, due_at FROM webhooks WHERE id LIKE 'whk\\_${name}\\_%'`);
  }

  interface Claimed {
    delivery_id: string;
    organization_id: string;
    url: string;
  }

  async function claim(healthy: boolean, max = 50, ofOrganization = 2, id = 'gen_random_uuid()'): Promise<Claimed[]> {
    return (await service.query(
      `SELECT * FROM webhook_claim(${id}, ${healthy}, ${max}, ${ofOrganization}, 60)`,
    )) as never;
  }

  /** The blocks that a statement reads on a connection that has run it before. What it claims is released. */
  async function blocksOf(statement: string): Promise<number> {
    const blocks: number[] = [];
    for (let run = 0; run < 4; run++) {
      const [row] = await service.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
      const [{ Plan: plan }] = row?.['QUERY PLAN'] as [{ Plan: Record<string, number> }];
      blocks.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
      await service.query(`UPDATE webhooks SET claim = NULL, claimed_until = NULL WHERE claim IS NOT NULL`);
    }
    return Math.min(...blocks);
  }

  async function blocksOfAll(): Promise<Record<string, number>> {
    await service.query('VACUUM ANALYZE');
    const blocks: Record<string, number> = {};
    for (const [name, statement] of Object.entries(STATEMENTS)) blocks[name] = await blocksOf(statement);
    return blocks;
  }

  describe('the look for due deliveries', () => {
    it('costs the same with 1,000 webhooks that are due as with 20,000 of 50,000 organizations', async () => {
      const half = { healthy: 'n % 2 = 0', host: `'host-' || n || '.example.com'` };
      await add('few', { organizations: 1_000, ...half });
      const few = await blocksOfAll();
      await add('many', { organizations: 19_000, ...half });
      await service.query(
        `INSERT INTO organizations (id, name, plan) SELECT 'org_idle_' || n, 'Idle', 'pro' FROM generate_series(1, 30000) n`,
      );
      const many = await blocksOfAll();
      const grown = Object.keys(STATEMENTS).filter((name) => (many[name] ?? 0) > blocksMax(few[name] ?? 0));
      expect({ few, many, grown }).toEqual({ few, many, grown: [] });
      await service.app.get(WebhookHousekeeping).clean();
      const overdue = /^ct_webhook_deliveries_overdue_seconds ([\d.]+)$/m.exec(
        (await service.request('GET', '/metrics')).text,
      );
      expect(Number(overdue?.[1])).toBeGreaterThan(3_000);
    });
  });

  describe('a host to which no delivery has succeeded', () => {
    it('gets 10 at a time of all organizations, whatever its ports and however many processes claim, until one has', async () => {
      await add('new', { organizations: 30, host: `'new.example.com:' || 8000 + n` });
      const claims = await Promise.all(Array.from({ length: 6 }, () => claim(false, 5)));
      expect(claims.flat()).toHaveLength(10);
      expect(await claim(false)).toEqual([]);
      const [{ delivery_id: id }] = claims.flat() as [Claimed];
      await service.query(`SELECT webhook_record('${id}', claim, 'succeeded', 200, NULL, 1, NULL, 1)
      FROM webhooks WHERE id = (SELECT webhook_id FROM webhook_deliveries WHERE id = '${id}')`);
      expect(await claim(false)).toHaveLength(20);
    });

    it('does not hold up other hosts with thousands of due webhooks', async () => {
      await add('flood', { organizations: 300, each: 10 });
      expect(await claim(false, 25)).toHaveLength(10);
      await add('other', { organizations: 3, host: `'other-' || n || '.example.com'` });
      const others: string[] = [];
      for (let look = 0; look < 5 && others.length < 3; look += 1)
        others.push(...(await claim(false, 25)).map(({ organization_id: id }) => id));
      expect(others.sort()).toEqual(['org_other_1', 'org_other_2', 'org_other_3']);
    });
  });

  describe('an organization with more webhooks than it may be sent to at once', () => {
    it('does not hold up others, and is sent the rest when it may', async () => {
      await add('big', { organizations: 40, each: 10, healthy: 'true' });
      expect(new Set((await claim(true, 80)).map(({ organization_id: id }) => id)).size).toBe(40);
      expect(await claim(true, 50)).toEqual([]);
      await add('small', { organizations: 1, healthy: 'true' });
      expect((await claim(true, 50)).map(({ organization_id: id }) => id)).toEqual(['org_small_1']);
      await clock.move(62);
      expect(await claim(true, 80)).toHaveLength(80);
    });
  });

  describe('a clock that was a day ahead for a moment', () => {
    it('delays no delivery, pause or claim', async () => {
      await add('claimed', { organizations: 1, healthy: 'true' });
      await add('waits', { organizations: 1, healthy: 'true' });
      await add('fails', { organizations: 1, healthy: 'true' });
      await service.query(`UPDATE webhooks SET due_at = NULL; DELETE FROM webhook_deliveries`);
      const enqueue = (name: string) => service.query(`SELECT webhook_enqueue('org_${name}_1', 'job.completed', '{}')`);
      await clock.move(86_400);
      const process = `'00000000-0000-0000-0000-000000000001'`;
      await enqueue('fails');
      const [failed] = await claim(true, 50, 2, process);
      await service.query(
        `SELECT webhook_record('${failed?.delivery_id}', ${process}, 'failed', 500, NULL, 1, 300, 1)`,
      );
      await enqueue('claimed');
      expect(await claim(true, 50, 2, process)).toHaveLength(1);
      await enqueue('waits');
      await clock.reset();
      expect((await claim(true)).map(({ organization_id: id }) => id).sort()).toEqual(['org_claimed_1', 'org_waits_1']);
      expect(await claim(false)).toMatchObject([{ organization_id: 'org_fails_1' }]);
    });

    it('delays no new event of a webhook that pauses after a failure', async () => {
      await add('rests', { organizations: 1, healthy: 'true' });
      await service.query(
        `UPDATE webhooks SET due_at = NULL, rested_until = clock_now() + interval '1 day'; DELETE FROM webhook_deliveries`,
      );
      await service.query(`SELECT webhook_enqueue('org_rests_1', 'job.completed', '{}')`);
      expect(await claim(true)).toHaveLength(1);
    });
  });
});

describe('an upgrade', () => {
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
});

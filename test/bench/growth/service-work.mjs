import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { QuotaService } from '../../../dist/modules/quota/quota.service.js';
import { startService } from '../environment.mjs';
import { APPLICATION } from './statements.mjs';

const ADMIN_TOKEN = 'admin-token-of-the-growth-bench-0123456789';
const CALLS = 9;
/** Each so many calls the other statements are run, too. */
const CALLS_BETWEEN = 3;
const SLICES = 30;
/** Enough that each of the connections which happen to run them has run all statements of their functions before. */
const CHECKS = 30;
const SUBSCRIBED = '@bench-100x10';
/** Waits for what the service does by itself. */
const WAIT_MS_MAX = 120_000;
const DAY_MS = 86_400_000;

/** Everything that the service does with its database, in a process of its own for each time. */
export class ServiceWork {
  /** What did not respond as it should. */
  problems = [];
  #bench;
  #env;
  #client;
  #key;
  #service;

  /** @param client a connection to the database, whose statements are not logged */
  constructor(bench, { databaseUrl, fakeYoutube, client, key }) {
    this.#bench = bench;
    this.#client = client;
    this.#key = key;
    this.#env = {
      DATABASE_URL: databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      ADMIN_TOKEN,
      WEBHOOK_SECRET_KEY: 'secret-key-of-the-growth-bench-0123456789',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      JOB_SWEEP_SECONDS: '1',
    };
  }

  /** Makes rows of each kind: a settled call, a finished job with results, a subscription with two, and a webhook with their events. */
  makeSamples() {
    return this.#run(
      async () => {
        const { organization: organizationId } = await this.#get('/usage');
        const { id: webhookId } = await this.#post('/webhooks', { url: this.#receiverUrl });
        await this.#get('/channels/@bench-2x10/transcripts?limit=2');
        const { id: jobId } = await this.#post('/jobs', { channel: '@bench-3x10' });
        await this.#subscription();
        await this.#until('three events are sent', () =>
          this.#has(`SELECT FROM webhook_deliveries WHERE state = 'succeeded' HAVING count(*) = 3`),
        );
        const { rows } = await this.#client.query(
          'SELECT api_keys.id AS key, sources.id AS source FROM api_keys, sources',
        );
        return { organizationId, keyId: rows[0].key, webhookId, jobId, sourceId: rows[0].source };
      },
      { JOB_CONCURRENCY: '2' },
    );
  }

  /**
   * Runs every statement of the service: those of calls, of jobs and webhooks, of operators and of the housekeeping. The
   * slices of jobs come last and are counted, so that as many are run at each size, however fast the machine is.
   */
  async everything({ organizationId, keyId, webhookId }, bigJobId) {
    await this.#run(async () => {
      for (let call = 0; call < CALLS; call += 1) {
        const channel = `/channels/@bench-${3 + call}x10`;
        for (const path of ['transcripts?limit=3', 'transcripts?limit=3', 'uploads?limit=3'])
          await this.#get(`${channel}/${path}`);
        for (const path of ['/usage', '/metrics', '/health/ready']) await this.#get(path);
        if (call % CALLS_BETWEEN > 0) continue;
        await this.#job(bigJobId);
        // Two for a job, so that the median of what creates either is that of a subscription.
        for (const id of [await this.#subscription(), await this.#subscription()])
          await this.#request('DELETE', `/subscriptions/${id}`);
        await this.#webhook(webhookId);
        await this.#feedLink();
        await this.#operator(organizationId);
      }
      await this.#dueJob();
      await this.#cancelReservation(organizationId, keyId);
      const due = `FROM webhook_deliveries WHERE webhook_id = $1 AND attempts = 0 AND state = 'pending'`;
      await this.#until(`all deliveries are sent`, () =>
        this.#has(`SELECT WHERE NOT EXISTS (SELECT ${due})`, [webhookId]),
      );
    });
    const working = async () => {
      await this.#library(await this.#checks(organizationId));
      await this.#slices(SLICES);
    };
    await this.#run(working, { JOB_CONCURRENCY: '2' });
  }

  /** Checks of one source: the first for a subscription, whose ID is returned, later ones, one that is refused, and one of a channel's name. */
  async #checks(organizationId) {
    const id = await this.#subscription();
    await this.#until('the subscription has results', async () => {
      // Else each of the other organizations with due slices has its turn before.
      const first = `UPDATE job_queues SET videos_turn_at = 'epoch' WHERE organization_id = $1 AND videos_turn_at IS NOT NULL`;
      await this.#client.query(first, [organizationId]);
      return this.#has('SELECT FROM jobs WHERE id = $1 AND succeeded + failed > 0', [id]);
    });
    for (let check = 1; check <= CHECKS; check += 1) await this.#check(id, 'fingerprint = NULL');
    await this.#check(id, `continuation = 'refused'`);
    await this.#client.query(
      `INSERT INTO sources (id, kind, created_at, next_check_at, scheduled_at) VALUES ($1, 'channel', now(), now(), now())`,
      [SUBSCRIBED],
    );
    await this.#client.query('UPDATE jobs SET source_id = $2, place = -1 WHERE id = $1', [id, SUBSCRIBED]);
    await this.#until('the channel is found by its name', () =>
      this.#has('SELECT FROM jobs WHERE id = $1 AND source_id <> $2', [id, SUBSCRIBED]),
    );
    return id;
  }

  async #check(id, change) {
    const due = `UPDATE sources SET next_check_at = now(), ${change} FROM jobs WHERE jobs.id = $1 AND sources.id = source_id`;
    await this.#client.query(due, [id]);
    const checked =
      'SELECT FROM jobs JOIN sources ON sources.id = source_id WHERE jobs.id = $1 AND next_check_at > now()';
    await this.#until('the subscription was checked again', () =>
      this.#has(`${checked} AND sources.claim IS NULL`, [id]),
    );
  }

  async #job(bigJobId) {
    const { id } = await this.#post('/jobs', { channel: '@bench-100x10' });
    const { next } = await this.#get('/jobs?limit=5');
    await this.#get(`/jobs?limit=5&after=${next}`);
    // The service reads 20 entries at once: every read is a full one, so that the median is not one of full and of half reads.
    for (const path of [id, `${bigJobId}/results?limit=40`, `${bigJobId}/results?limit=40&after=40`])
      await this.#get(`/jobs/${path}`);
    await this.#request('PATCH', `/jobs/${id}`, { body: { keep: false } });
    for (const change of ['cancel', 'resume', 'cancel']) await this.#post(`/jobs/${id}/${change}`);
    await this.#request('DELETE', `/jobs/${id}`);
  }

  async #subscription() {
    const { id } = await this.#post('/subscriptions', { channel: SUBSCRIBED, start: 2 });
    for (const path of ['?limit=5', `/${id}`, `/${id}/results`]) await this.#get(`/subscriptions${path}`);
    await this.#request('PATCH', `/subscriptions/${id}`, { body: { checkMinutes: 30 } });
    await this.#post(`/subscriptions/${id}/check`);
    return id;
  }

  async #feedLink() {
    const { id, url } = await this.#post('/feed-links', {});
    await this.#get('/feed-links');
    await this.#get(new URL(url).pathname.replace('.atom', '.json'));
    await this.#request('DELETE', `/feed-links/${id}`);
  }

  /** Keeps what a subscription has, searches it, and deletes it. */
  async #library(subscriptionId) {
    await this.#request('PATCH', `/subscriptions/${subscriptionId}`, { body: { keep: true } });
    await this.#until('the results are kept', () =>
      this.#has('SELECT FROM library_texts JOIN jobs USING (organization_id) WHERE jobs.id = $1', [subscriptionId]),
    );
    const { videos } = await this.#get('/library/videos?limit=1');
    for (const sort of ['relevance', 'newest']) await this.#get(`/library/search?q=bench&sort=${sort}`);
    await this.#request('DELETE', `/library/videos/${videos[0].videoId}`);
    await this.#request('DELETE', '/library?channel=@bench-100x10');
  }

  async #webhook(webhookId) {
    const { id } = await this.#post('/webhooks', { url: this.#receiverUrl });
    await this.#get('/webhooks');
    const { next } = await this.#get(`/webhooks/${webhookId}/deliveries?limit=5`);
    await this.#get(`/webhooks/${webhookId}/deliveries?limit=5&after=${next}`);
    for (const change of ['test', 'rotate']) await this.#post(`/webhooks/${id}/${change}`);
    await this.#request('PATCH', `/webhooks/${id}`, { body: { url: this.#receiverUrl, labels: { user: '42' } } });
    await this.#post(`/webhooks/${webhookId}/deliveries/${next}/retry`);
    const { next: cursor } = await this.#get('/feed?limit=5');
    await this.#get(`/feed?limit=5&after=${cursor}`);
    await this.#get('/feed?limit=5&label=user:42');
    await this.#post(`/webhooks/${id}/replay`, { after: '0' });
    await this.#until('the entries of a replay are read', () =>
      this.#has('SELECT FROM webhooks WHERE id = $1 AND replay_after IS NULL OR replay_after > 0', [id]),
    );
    await this.#request('DELETE', `/webhooks/${id}`);
  }

  async #operator(organizationId) {
    const admin = { token: ADMIN_TOKEN };
    const { next } = await this.#get('/admin/organizations?limit=5', admin);
    await this.#get(`/admin/organizations?limit=5&after=${next}`, admin);
    const path = `/admin/organizations/${organizationId}`;
    await this.#get(path, admin);
    await this.#request('PATCH', path, { ...admin, body: { plan: 'pro' } });
    const { id, key } = await this.#post(`${path}/keys`, { monthlyLimit: 10 }, admin);
    await this.#get('/channels/@bench-2x10/transcripts?limit=2', { token: key });
    await this.#get(`${path}/keys?limit=5`, admin);
    const { id: newer } = await this.#post(`/admin/keys/${id}/rotate`, {}, admin);
    await this.#request('DELETE', `/admin/keys/${newer}`, admin);
    const day = (ago) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
    for (const by of ['day', 'key', 'resource'])
      await this.#get(`${path}/usage?from=${day(390)}&to=${day(0)}&by=${by}`, admin);
    await this.#get(`${path}/usage?verify=true`, admin);
    await this.#get(`/admin/audit?limit=5&organization=${organizationId}`, admin);
    await this.#post('/admin/usage/prune', undefined, admin);
    const other = await this.#post('/admin/organizations', { name: 'Short-lived', plan: 'free' }, admin);
    await this.#request('DELETE', `/admin/organizations/${other.id}`, admin);
  }

  /** A job that waits for its turn, of another organization. */
  async #dueJob() {
    const { rows } = await this.#client.query(`SELECT id FROM jobs WHERE state = 'queued' ORDER BY id DESC LIMIT 1`);
    for (const { id } of rows) await this.#post(`/admin/jobs/${id}/cancel`, undefined, { token: ADMIN_TOKEN });
  }

  /** What follows a reservation with an unknown outcome, which cannot be had from outside. */
  async #cancelReservation(organizationId, keyId) {
    const database = new DataSource({
      type: 'postgres',
      driver: pg,
      url: this.#env.DATABASE_URL,
      applicationName: APPLICATION,
    });
    await database.initialize();
    const retries = { untilSettled: (_reservation, _fetched, settle) => settle() };
    const quota = new QuotaService(database, {}, {}, retries);
    for (let call = 0; call < CALLS; call += 1) {
      const id = randomUUID();
      const ids = { id, organization_id: organizationId, key_id: keyId };
      const row = JSON.stringify({ ...ids, request_id: 'request', channel_id: 'channel', required: 1 });
      await quota.cancel({ id, organizationId }, row);
    }
    await database.destroy();
  }

  async #run(work, { JOB_CONCURRENCY = '0' } = {}) {
    const receiver = createServer((request, response) =>
      request.resume().once('end', () => response.writeHead(204).end()),
    );
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    this.#receiverUrl = `http://127.0.0.1:${receiver.address().port}/`;
    // Of the run before, whose receiver has another port.
    await this.#client.query('UPDATE webhooks SET url = $1', [this.#receiverUrl]).catch(() => undefined);
    this.#service = await startService(this.#bench.folder, { ...this.#env, JOB_CONCURRENCY }, { name: 'growth' });
    try {
      return await work();
    } finally {
      await this.#service.stop();
      receiver.close();
    }
  }

  #receiverUrl;

  #get(path, options) {
    return this.#request('GET', path, options);
  }

  #post(path, body, options) {
    return this.#request('POST', path, { ...options, body });
  }

  async #request(method, path, { body, token = this.#key } = {}) {
    const headers = { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) };
    const response = await fetch(`http://127.0.0.1:${this.#service.port}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) this.problems.push(`${method} ${path} returned ${response.status}: ${text.slice(0, 200)}`);
    return text.startsWith('{') ? JSON.parse(text) : {};
  }

  /** Waits until the service has run some slices of jobs, or all that were due. */
  #slices(count) {
    return this.#until(`${count} slices are run`, async () => {
      const response = await fetch(`http://127.0.0.1:${this.#service.port}/metrics`);
      const run = (await response.text()).matchAll(/^ct_job_slices_total\{.*\} (\d+)$/gm);
      const isEnough = [...run].reduce((sum, [, slices]) => sum + Number(slices), 0) >= count;
      return isEnough || !(await this.#has('SELECT FROM jobs WHERE next_run_at <= now() LIMIT 1'));
    });
  }

  async #has(statement, values) {
    return (await this.#client.query(statement, values)).rowCount > 0;
  }

  async #until(what, isDone) {
    const giveUpAt = performance.now() + WAIT_MS_MAX;
    while (!(await isDone())) {
      if (performance.now() > giveUpAt) {
        this.problems.push(`It was not seen within ${WAIT_MS_MAX / 1000} s that ${what}.`);
        return;
      }
      await sleep(200);
    }
  }
}

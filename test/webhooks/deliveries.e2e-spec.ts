import { pipeline, Readable, type Writable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { BackgroundLoops } from '../../src/background/background-loops.js';
import { ATTEMPTS_MAX, WebhookDeliverer } from '../../src/webhooks/webhook-deliverer.js';
import { REMOVALS, WebhookHousekeeping } from '../../src/webhooks/webhook-housekeeping.js';
import { WebhookResolver } from '../../src/webhooks/webhook-url.js';
import { WebhookSender } from '../../src/webhooks/webhook-sender.js';
import { DatabaseClock } from '../database/database-clock.js';
import { holdLock, WAITING_FOR_LOCKS } from '../database/lock-table.js';
import { runQuery } from '../database/test-database.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { DeliverySteps, only, respondWith, type Delivery } from './delivery-steps.js';
import { idOf, isSigned, startReceiver, verified, WEBHOOK_SECRET_KEY, type Receiver } from './receiver.js';

const SECONDS_PER_DAY = 86_400;

let service: TestService;
let receiver: Receiver;
let clock: DatabaseClock;
let steps: DeliverySteps;

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startService({
    interruptible: true,
    environment: { RATE_LIMIT_PER_MINUTE: 0, WEBHOOK_ALLOW_PRIVATE: true, WEBHOOK_SECRET_KEY },
  });
  clock = new DatabaseClock((statement) => service.query(statement));
  steps = new DeliverySteps(service, receiver.url);
  service.app.get(WebhookDeliverer).looks.pauseMs = 20;
});
afterAll(async () => {
  await receiver.close();
  await service.close();
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.respond = respondWith(204);
});
afterEach(async () => {
  // Deliveries that a test left behind are not sent to the receiver of the next one.
  await service.query('DELETE FROM webhooks');
  await clock.reset();
});

describe('an event', () => {
  it('is sent to each webhook of the organization that wants it, signed with its secret', async () => {
    const owner = await steps.customer({ events: ['job.completed'] });
    const all = await steps.addWebhook(owner.key);
    const unwanted = await steps.addWebhook(owner.key, { events: ['job.failed'] });
    const stranger = await steps.customer();
    await steps.enqueue(owner, 'job.completed', '{"jobId":"job_1","reason":null,"summary":{"total":2}}');
    for (const { id, secret } of [owner, all]) {
      await until(async () => (await steps.deliveriesOf({ key: owner.key, id }))[0]?.state === 'succeeded');
      const [delivery] = await steps.deliveriesOf({ key: owner.key, id });
      expect(delivery).toMatchObject({
        type: 'job.completed',
        attempts: 1,
        nextAttemptAt: null,
        responseStatus: 204,
        error: null,
      });
      const message = only(
        receiver.received.filter((each) => idOf(each) === delivery?.eventId && isSigned(each, secret)),
      );
      expect(verified(message, secret)).toEqual({
        type: 'job.completed',
        timestamp: delivery?.createdAt,
        data: { jobId: 'job_1', reason: null, summary: { total: 2 } },
      });
    }
    expect(await steps.deliveriesOf({ key: owner.key, id: unwanted.id })).toEqual([]);
    expect(await steps.deliveriesOf(stranger)).toEqual([]);
  });

  it.each([
    ['COMMIT', []],
    ['ROLLBACK', ['succeeded']],
  ] as const)(
    'that occurs while a webhook is deleted follows the outcome (%s), and reaches the others',
    async (end, states) => {
      const owner = await steps.customer();
      const { id } = await steps.addWebhook(owner.key);
      const endDeletion = await holdLock(service.databaseUrl, `DELETE FROM webhooks WHERE id = '${owner.id}'`);
      const enqueued = steps.enqueue(owner);
      await until(async () => (await service.query(WAITING_FOR_LOCKS)).length === 1);
      await endDeletion(end);
      await enqueued;
      const statesOf = async (id: string) =>
        (await service.query(`SELECT state FROM webhook_deliveries WHERE webhook_id = '${id}'`)).map(
          ({ state }) => state,
        );
      await until(async () => (await statesOf(id)).join() === 'succeeded');
      await until(async () => (await statesOf(owner.id)).join() === states.join());
      expect(receiver.received).toHaveLength(1 + states.length);
    },
  );

  it('does not wait until the deliveries of a webhook are deleted', async () => {
    const owner = await steps.customer();
    const deliveries = `webhook_deliveries WHERE webhook_id = '${owner.id}'`;
    await service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, state, created_at)
      VALUES ('${owner.id}', 'job.completed', '{}', 'failed', clock_now())`);
    // The deletion waits for one of them.
    const release = await holdLock(service.databaseUrl, `SELECT FROM ${deliveries} FOR KEY SHARE`);
    const deleted = service.request('DELETE', `/webhooks/${owner.id}`, { Authorization: `Bearer ${owner.key}` });
    await until(async () => (await service.query(WAITING_FOR_LOCKS)).length > 0);
    await steps.enqueue(owner);
    await release();
    expect((await deleted).status).toBe(204);
    expect(await service.query(`SELECT id FROM ${deliveries}`)).toEqual([]);
  });

  it('beyond 1,000 waiting deliveries of a webhook is not sent to it, and is counted; one an hour is listed', async () => {
    const clean = (): Promise<unknown> => service.app.get(WebhookHousekeeping).clean();
    const owner = await steps.customer();
    const { id } = await steps.addWebhook(owner.key);
    const insertWaiting = (count: number): Promise<unknown> =>
      service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
        SELECT '${owner.id}', 'job.paused', '{}', clock_now(), clock_now() + interval '9 hours'
          FROM generate_series(1, ${count})`);
    await insertWaiting(999);
    expect(await steps.attempted(await steps.enqueued(owner), 1)).toMatchObject({ state: 'succeeded' });
    await insertWaiting(1);
    await clean();
    const listed = async (): Promise<Delivery[]> =>
      (await steps.deliveriesOf(owner)).filter(({ state }) => state === 'failed');
    for (let event = 1; event <= 3; event += 1) await steps.enqueue(owner);
    expect(await listed()).toMatchObject([
      { attempts: 0, nextAttemptAt: null, error: 'The webhook has 1000 waiting deliveries.' },
    ]);
    await clock.move(3_601);
    await steps.enqueue(owner);
    expect(await listed()).toHaveLength(2);
    await clean();
    expect((await service.request('GET', '/metrics')).text).toMatch(/^ct_webhook_events_dropped 4$/m);
    expect(service.logs.join('')).toMatch(/"event":"webhook_events_dropped","events":4\b/);
    expect((await steps.deliveriesOf({ key: owner.key, id })).every(({ state }) => state !== 'failed')).toBe(true);
  });
});

describe('a delivery that fails', () => {
  it('is repeated with the same ID and content over about a day, and is then given up', async () => {
    const owner = await steps.customer();
    await clock.stop();
    receiver.respond = respondWith(503);
    await steps.enqueue(owner);
    // What the test before left behind may still arrive.
    const received = () => receiver.received.filter((message) => isSigned(message, owner.secret));
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const delivery = await steps.attempted(owner, attempt);
      expect(delivery).toMatchObject({ responseStatus: 503, error: 'The receiver responded with 503.' });
      if (attempt === ATTEMPTS_MAX) {
        expect(delivery).toMatchObject({ state: 'failed', nextAttemptAt: null });
        break;
      }
      const pause = (Date.parse(delivery.nextAttemptAt) - Date.parse(delivery.lastAttemptAt)) / 1000;
      pauses.push(pause);
      // Nothing is sent before it is due.
      await clock.move(pause - 1);
      expect(await steps.claimFailing()).toEqual([]);
      expect(received()).toHaveLength(attempt);
      await clock.move(2);
    }
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    const days = pauses.reduce((sum, pause) => sum + pause, 0) / SECONDS_PER_DAY;
    expect(days).toBeGreaterThan(0.85);
    expect(days).toBeLessThan(1.15);
    await clock.move(SECONDS_PER_DAY);
    expect(await steps.claimFailing()).toEqual([]);
    expect(received()).toHaveLength(ATTEMPTS_MAX);
    expect(new Set(received().map(idOf)).size).toBe(1);
    expect(new Set(received().map(({ body }) => body)).size).toBe(1);
    expect(await steps.webhookOf(owner)).toMatchObject({ failingSince: expect.any(String), disabledAt: null });
    expect(service.logs.some((line) => line.includes('webhook_delivery_given_up'))).toBe(true);
  });

  it('succeeds later, and the webhook does not count as failing any more', async () => {
    const owner = await steps.customer();
    receiver.respond = respondWith(500);
    await clock.stop();
    const { lastAttemptAt: failingSince } = await steps.attempted(await steps.enqueued(owner), 1);
    expect(await steps.webhookOf(owner)).toMatchObject({ failingSince });
    receiver.respond = respondWith(200);
    await clock.move(6);
    expect(await steps.attempted(owner, 2)).toMatchObject({ state: 'succeeded', responseStatus: 200, error: null });
    expect(await steps.webhookOf(owner)).toMatchObject({ failingSince: null });
  });

  it('turns the webhook off when it is given up and none has succeeded for five days', async () => {
    const owner = await steps.customer();
    receiver.respond = respondWith(500);
    await clock.stop();
    await steps.attempted(await steps.enqueued(owner), 1);
    // It is tried again, and waits; the webhook rests for an hour.
    await clock.move(4.9 * SECONDS_PER_DAY);
    await steps.attempted(owner, 2);
    await steps.enqueueLastAttempt(owner);
    await clock.move(3_601);
    await steps.attempted(owner, ATTEMPTS_MAX);
    expect(await steps.webhookOf(owner)).toMatchObject({ disabledAt: null });
    await steps.enqueueLastAttempt(owner);
    await clock.move(0.2 * SECONDS_PER_DAY);
    await until(async () => (await steps.webhookOf(owner))['disabledAt'] !== null);
    expect(await steps.webhookOf(owner)).toMatchObject({ disabledReason: 'failing', failingSince: expect.any(String) });
    const ended = await steps.deliveriesOf(owner);
    expect(ended.map(({ state, error }) => [state, error])).toEqual([
      ['failed', 'The receiver responded with 500.'],
      ['failed', 'The receiver responded with 500.'],
      ['failed', 'The webhook was turned off.'],
    ]);
    await steps.enqueue(owner);
    expect(await steps.deliveriesOf(owner)).toHaveLength(3);
    expect(service.logs.join('')).toMatch(/"event":"webhook_disabled".*"reason":"failing"/);
  });

  it('with 410 turns the webhook off at once', async () => {
    const owner = await steps.enqueued(await steps.customer());
    receiver.respond = respondWith(410);
    expect(await steps.attempted(owner, 1)).toMatchObject({
      state: 'failed',
      responseStatus: 410,
      nextAttemptAt: null,
    });
    expect(await steps.webhookOf(owner)).toMatchObject({ disabledReason: 'gone', disabledAt: expect.any(String) });
    await steps.enqueue(owner);
    expect(await steps.deliveriesOf(owner)).toHaveLength(1);
  });

  it.each([301, 308])('with a redirect %i is not followed', async (status) => {
    const other = await startReceiver();
    receiver.respond = (response) => void response.writeHead(status, { Location: other.url }).end();
    expect(await steps.attempted(await steps.enqueued(await steps.customer()), 1)).toMatchObject({
      state: 'pending',
      responseStatus: status,
      error: `The receiver responded with ${status}; redirects are not followed.`,
    });
    expect(other.connections()).toBe(0);
    await other.close();
  });
});

describe('a receiver', () => {
  let slow: Receiver;
  let timeoutMs: number;
  beforeEach(async () => {
    timeoutMs = service.app.get(WebhookSender).timeoutMs;
    slow = await startReceiver();
    slow.respond = () => undefined;
  });
  afterEach(async () => {
    service.app.get(WebhookSender).timeoutMs = timeoutMs;
    await slow.close();
  });

  it('that does not respond holds up no other webhook, and gets one delivery at a time', async () => {
    const [owner, other] = [await steps.customer({ url: slow.url }), await steps.customer()];
    for (const type of ['job.paused', 'job.completed']) await steps.enqueue(owner, type);
    await until(() => slow.received.length === 1);
    for (const type of ['job.paused', 'job.completed']) await steps.enqueue(other, type);
    await until(() => receiver.received.length === 2);
    expect(slow.received).toHaveLength(1);
  });

  it('that does not respond fails after the timeout, and gets no delivery for as long as it has failed', async () => {
    service.app.get(WebhookSender).timeoutMs = 300;
    const owner = await steps.customer({ url: slow.url });
    await clock.stop();
    for (const type of ['job.paused', 'job.completed']) {
      await steps.enqueue(owner, type);
      await clock.move(1);
    }
    const attempts = async (): Promise<number[]> =>
      (await steps.deliveriesOf(owner)).map((delivery) => delivery.attempts);
    const attemptsAfter = async (seconds: number, expected: number[]): Promise<void> => {
      await clock.move(seconds - 1);
      expect(await steps.claimFailing()).toEqual([]);
      await clock.move(2);
      await until(async () => String(await attempts()) === String(expected));
    };
    await until(async () => String(await attempts()) === '0,1');
    expect((await steps.deliveriesOf(owner))[1]).toMatchObject({
      state: 'pending',
      responseStatus: null,
      error: 'The receiver did not respond in time.',
    });
    // The delivery that was tried before is repeated first, while it is due.
    await attemptsAfter(5, [0, 2]);
    await attemptsAfter(6, [1, 2]);
    await attemptsAfter(13, [2, 2]);
  });

  it.each([
    ['of a few organizations', { organizations: 7, webhooks: 10, succeeded: false, sent: 14 }],
    ['of a few organizations, which responded before', { organizations: 7, webhooks: 10, succeeded: true, sent: 35 }],
    ['of many organizations', { organizations: 40, webhooks: 1, succeeded: false, sent: 25 }],
  ])('is reached while those %s do not respond', async (_whose, { organizations, webhooks, succeeded, sent }) => {
    service.app.get(WebhookSender).timeoutMs = 60_000;
    const owner = await steps.customer();
    await steps.attempted(await steps.enqueued(owner), 1);
    const others = Array.from({ length: organizations }, async () => {
      const other = await steps.customer({ url: slow.url });
      for (let count = 1; count < webhooks; count += 1) await steps.addWebhook(other.key, { url: slow.url });
      return other;
    });
    await Promise.all(others);
    if (succeeded) await steps.succeedBefore();
    for (let event = 0; event < 2; event += 1)
      for (const other of await Promise.all(others)) await steps.enqueue(other);
    await until(() => slow.received.length === sent);
    for (let event = 0; event < 3; event += 1) await steps.enqueue(owner);
    await until(() => receiver.received.length === 4);
    expect(slow.received).toHaveLength(sent);
  });

  it('whose response never ends has accepted the delivery, and its connection is closed', async () => {
    let chunks = 0;
    let closed = false;
    receiver.respond = (response) => {
      response.on('close', () => (closed = true));
      const endless = new Readable({
        read() {
          chunks += 1;
          this.push(Buffer.alloc(64 * 1024));
        },
      });
      pipeline(endless, response.writeHead(200), () => undefined);
    };
    const owner = await steps.enqueued(await steps.customer());
    expect(await steps.attempted(owner, 1)).toMatchObject({ state: 'succeeded', responseStatus: 200 });
    await until(() => closed);
    expect(chunks).toBeLessThan(512);
  });

  it.each([
    ['interim responses', 'HTTP/1.1 102 Processing\r\n\r\n', '', { state: 'pending', responseStatus: null }],
    [
      'the extension of a chunk',
      'x'.repeat(64),
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;',
      { state: 'succeeded', responseStatus: 200 },
    ],
  ])('that sends %s without end is cut off', async (_what, piece, first, expected) => {
    let written = 0;
    let closed = false;
    receiver.respond = ({ socket }) => {
      const endless = new Readable({
        read() {
          this.push(Buffer.from(piece.repeat(1_000)));
        },
      });
      socket?.write(first);
      pipeline(endless, socket as Writable, () => {
        written = socket?.bytesWritten ?? 0;
        closed = true;
      });
    };
    const owner = await steps.enqueued(await steps.customer());
    const delivery = await steps.attempted(owner, 1);
    expect(delivery).toMatchObject(expected);
    if (expected.responseStatus === null)
      expect(delivery).toMatchObject({ error: 'The receiver sent more than 64 KB without a final response.' });
    await until(() => closed);
    // What the buffers of the two sockets take is sent too.
    expect(written).toBeLessThan(20_000_000);
    receiver.respond = (response) => void response.writeHead(204).end();
  });

  it('is reached at the address that was checked, by its own name', async () => {
    const resolve = jest
      .spyOn(service.app.get(WebhookResolver), 'addressesOf')
      .mockResolvedValue([{ address: '127.0.0.1', family: 4 }]);
    const owner = await steps.enqueued(await steps.customer({ url: `http://hooks.example.com:${receiver.port}/` }));
    await steps.attempted(owner, 1);
    expect(only(receiver.received).headers.host).toBe(`hooks.example.com:${receiver.port}`);
    resolve.mockRestore();
  });
});

describe('a process that is killed', () => {
  it('between sending and recording repeats the delivery with the same ID, when its lease has ended', async () => {
    const owner = await steps.customer();
    receiver.respond = (response) => {
      service.link.cut();
      response.writeHead(200).end();
    };
    await steps.enqueue(owner);
    await until(() => service.logs.some((line) => line.includes('webhook_attempt_not_recorded')));
    receiver.respond = respondWith(200);
    service.link.join();
    await until(async () => (await service.get('/usage', owner.key)).status === 200);
    expect(await steps.deliveriesOf(owner)).toMatchObject([{ state: 'pending', attempts: 0 }]);
    expect(receiver.received).toHaveLength(1);
    await clock.move(61);
    expect(await steps.attempted(owner, 1)).toMatchObject({ state: 'succeeded' });
    expect(receiver.received.map(idOf)).toEqual(Array(2).fill((await steps.deliveriesOf(owner))[0]?.eventId));
  });
});

describe('housekeeping', () => {
  const clean = (): Promise<unknown> => service.app.get(WebhookHousekeeping).clean();

  it('removes deliveries that succeeded after 7 days and others after 30, and secrets whose rotation has ended', async () => {
    const owner = await steps.customer();
    await steps.post(owner, 'rotate');
    await steps.attempted(await steps.enqueued(owner), 1);
    receiver.respond = respondWith(500);
    await steps.attempted(await steps.enqueued(owner), 1);
    await service.query(
      `UPDATE webhook_deliveries SET state = 'failed', next_attempt_at = NULL WHERE state = 'pending'`,
    );
    const statesAfter = async (days: number): Promise<string[]> => {
      await clock.move(days * SECONDS_PER_DAY);
      await clean();
      return (await steps.deliveriesOf(owner)).map(({ state }) => state);
    };
    expect(await statesAfter(6.9)).toEqual(['failed', 'succeeded']);
    expect(await statesAfter(0.2)).toEqual(['failed']);
    expect(await service.query('SELECT previous_secret FROM webhooks')).toEqual([{ previous_secret: null }]);
    expect(await statesAfter(22.8)).toEqual(['failed']);
    expect(await statesAfter(0.2)).toEqual([]);
  });

  it('does not remove a delivery that waits to be sent again, however old it is', async () => {
    const owner = await steps.customer();
    receiver.respond = respondWith(500);
    await steps.attempted(await steps.enqueued(owner), 1);
    await service.query(`
      UPDATE webhook_deliveries SET created_at = clock_now() - interval '31 days', next_attempt_at = clock_now() + interval '1 hour'`);
    await clean();
    expect((await steps.deliveriesOf(owner)).map(({ state }) => state)).toEqual(['pending']);
  });

  it('removes the webhooks of a deleted organization after their deliveries', async () => {
    const owner = await steps.customer();
    await steps.attempted(await steps.enqueued(owner), 1);
    await service.query(`UPDATE organizations SET deleted_at = clock_now() WHERE id = '${owner.organizationId}'`);
    await clean();
    expect(await service.query(`SELECT id FROM webhooks WHERE id = '${owner.id}'`)).toEqual([]);
  });

  it('finds and removes old deliveries by indexes, also as many as it removes at once', async () => {
    await steps.customer();
    await service.query(`
      INSERT INTO webhook_deliveries (id, webhook_id, type, data, created_at, state)
        SELECT 'msg_' || n, (SELECT id FROM webhooks LIMIT 1), 'ping', '{}', now(), 'succeeded' FROM generate_series(1, 3000) AS n`);
    await service.query('ANALYZE webhook_deliveries');
    // A few rows are read without the index otherwise.
    const url = `${service.databaseUrl}?options=-c%20enable_seqscan%3Doff`;
    for (const statement of REMOVALS.slice(0, 2)) {
      const plan = (await runQuery(url, `EXPLAIN ${statement.replace('$1', '10000')}`))
        .map((line) => line['QUERY PLAN'])
        .join('\n');
      expect(plan).toMatch(/Index Cond: \(created_at </);
      expect(plan).not.toContain('Join');
    }
  });

  it('reports no delivery as overdue while its webhook waits after a failure', async () => {
    const owner = await steps.customer();
    await service.query(`UPDATE webhooks SET failing_since = clock_now() - interval '1 day'`);
    receiver.respond = respondWith(500);
    await steps.attempted(await steps.enqueued(owner), 1);
    await steps.enqueue(owner);
    await clock.move(1_200);
    await clean();
    const { text } = await service.request('GET', '/metrics');
    expect(text).toMatch(/^ct_webhook_deliveries_waiting 2$/m);
    expect(text).toMatch(/^ct_webhook_deliveries_overdue_seconds 0$/m);
  });

  it('reports what waits, and deliveries that no process can sign as overdue, which are sent after a rotation', async () => {
    const owner = await steps.customer();
    await service.query(`UPDATE webhooks SET secret = '\\x00'::bytea || secret`);
    await steps.enqueue(owner);
    await steps.enqueue(owner);
    await until(() => service.logs.some((line) => line.includes('The secret of this webhook cannot be read')));
    await clock.move(600);
    await clean();
    const { text } = await service.request('GET', '/metrics');
    expect(text).toMatch(/^ct_webhook_deliveries_waiting 2$/m);
    expect(Number(/^ct_webhook_deliveries_overdue_seconds ([\d.]+)$/m.exec(text)?.[1])).toBeGreaterThan(590);
    const response = await steps.post(owner, 'test');
    expect([response.status, response.body.error.code]).toEqual([409, 'conflict']);
    expect(receiver.received).toEqual([]);
    await steps.post(owner, 'rotate');
    await clock.move(61);
    await steps.attempted(owner, 1);
  });
});

// The last ones, because the deliverer has stopped.
describe('a process that ends', () => {
  it('records what receivers respond meanwhile', async () => {
    const owner = await steps.customer();
    let respond = (): void => undefined;
    receiver.respond = (response) => {
      respond = () => void response.writeHead(200).end();
    };
    await steps.enqueue(owner);
    await until(() => receiver.received.length === 1);
    const ended = service.app.get(BackgroundLoops).stop();
    respond();
    await ended;
    expect(await steps.deliveriesOf(owner)).toMatchObject([{ state: 'succeeded', attempts: 1 }]);
  });
});

describe('claims', () => {
  it('of any number of processes at once give each delivery to one process, and at most one of a webhook at a time', async () => {
    const owners = await Promise.all(Array.from({ length: 4 }, () => steps.customer()));
    await steps.succeedBefore();
    for (const owner of owners) for (let n = 0; n < 3; n += 1) await steps.enqueue(owner);
    const delivered = new Set<unknown>();
    for (let round = 1; round <= 3; round += 1) {
      const claims = await Promise.all(Array.from({ length: 8 }, (_, process) => steps.claim(process)));
      expect(claims.flat()).toHaveLength(4);
      for (const [process, claimed] of claims.entries())
        for (const { delivery_id: id } of claimed) {
          delivered.add(id);
          await steps.record(id, process);
        }
    }
    expect(delivered.size).toBe(12);
    expect((await Promise.all([steps.claim(1), steps.claim(2)])).flat()).toEqual([]);
  });

  it('that another process has taken over record nothing', async () => {
    const owner = await steps.enqueued(await steps.customer());
    await steps.succeedBefore();
    const [claimed] = await steps.claim(1);
    expect(await steps.claim(2)).toEqual([]);
    await clock.move(61);
    expect(await steps.claim(2)).toHaveLength(1);
    expect(await steps.record(claimed?.['delivery_id'], 1)).toEqual([]);
    expect(await steps.deliveriesOf(owner)).toMatchObject([{ state: 'pending', attempts: 0 }]);
    expect(await steps.record(claimed?.['delivery_id'], 2)).toHaveLength(1);
    expect(await steps.deliveriesOf(owner)).toMatchObject([{ state: 'succeeded', attempts: 1 }]);
  });

  it('take turns between webhooks, so that one with many deliveries does not hold up another', async () => {
    const [busy, other] = [await steps.customer(), await steps.customer()];
    await steps.succeedBefore();
    for (const owner of [busy, busy, busy, other, other]) await steps.enqueue(owner);
    const turns: unknown[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      const [claimed] = await steps.claim(1, 1);
      turns.push(claimed?.['webhook_id']);
      await steps.record(claimed?.['delivery_id']);
    }
    expect(turns.slice(0, 4).filter((id) => id === other.id)).toHaveLength(2);
    expect(turns.at(-1)).toBe(busy.id);
  });

  it('take turns between organizations, and leave an organization a limited number at a time', async () => {
    const [many, one] = [await steps.customer(), await steps.customer()];
    for (let count = 1; count < 6; count += 1) await steps.addWebhook(many.key);
    await steps.succeedBefore();
    await steps.enqueue(many);
    const organizations = async (process: number, max: number): Promise<unknown[]> =>
      (await steps.claim(process, max, 3)).map((claimed) => claimed['organization_id']);
    expect(await organizations(1, 1)).toEqual([many.organizationId]);
    await steps.enqueue(one);
    expect(await organizations(2, 1)).toEqual([one.organizationId]);
    expect(await organizations(3, 50)).toEqual(Array(2).fill(many.organizationId));
    expect(await organizations(4, 50)).toEqual([]);
    await clock.move(61);
    expect(await organizations(5, 50)).toHaveLength(4);
  });
});

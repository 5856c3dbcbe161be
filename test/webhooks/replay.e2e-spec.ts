import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { WebhookDeliverer } from '../../src/webhooks/webhook-deliverer.js';
import { DatabaseClock } from '../database/database-clock.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { follow } from '../subscriptions/subscription-requests.js';
import { DeliverySteps, respondWith, type Customer } from './delivery-steps.js';
import { idOf, startReceiver, WEBHOOK_SECRET_KEY, type Receiver } from './receiver.js';

let service: TestService;
let receiver: Receiver;
let clock: DatabaseClock;
let steps: DeliverySteps;

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startService({
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
  await service.query('DELETE FROM webhooks');
  await clock.reset();
});

const replay = ({ key, id }: { key: string; id: string }, after: string): Promise<ServiceResponse> =>
  steps.send(key, 'POST', `/webhooks/${id}/replay`, { after });

/** Each event once, as the receiver got it. */
const bodiesById = (): Record<string, string> =>
  Object.fromEntries(receiver.received.map((message) => [idOf(message), message.body]));

/** A subscription whose uploads a test decides. */
async function subscribed({ key }: Customer, labels: object = {}): Promise<string> {
  const { id } = await follow(service, key, { channel: '@tidewater', labels });
  await until(async () => (await service.get(`/subscriptions/${id}`, key)).body['checkedAt'] !== null);
  return id;
}

/** Makes entries of a subscription final, as slices do. */
async function decide(subscriptionId: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 50) {
    await service.query(`DO $$
      DECLARE
        job jobs;
        events json[] := ARRAY(SELECT json_build_object('videoId', lpad(n::text, 11, 'v'), 'code', NULL)
                                 FROM generate_series(${left - Math.min(left, 50) + 1}, ${left}) n);
      BEGIN
        PERFORM organization_lock((SELECT organization_id FROM jobs WHERE id = '${subscriptionId}'));
        SELECT * INTO job FROM jobs WHERE id = '${subscriptionId}' FOR UPDATE;
        INSERT INTO job_videos (job_id, position, video_id, upload, state, cached, entry, entry_bytes, entry_crc, sequence, mark, decided_at)
          SELECT job.id, job.last_position + place, event->>'videoId', '{}', 'succeeded', true, '\\x00', 1, 0,
                 job.succeeded + job.failed + place, new_mark(), clock_now()
            FROM unnest(events) WITH ORDINALITY AS decided (event, place);
        PERFORM log_append(job, events);
        PERFORM subscription_upload_events(job, cardinality(events));
        UPDATE jobs SET succeeded = succeeded + cardinality(events), total = total + cardinality(events),
          cached = cached + cardinality(events), last_position = last_position + cardinality(events) WHERE id = job.id;
      END $$`);
  }
}

/** The cursors of the feed, before each entry and after the last one. */
async function cursorsOf(organizationId: string): Promise<string[]> {
  const rows = await service.query(
    `SELECT concat_ws('.', sequence, mark) AS cursor FROM log_entries WHERE organization_id = '${organizationId}' ORDER BY sequence`,
  );
  return ['0', ...rows.map(({ cursor }) => String(cursor))];
}

const isReplayed = async ({ key, id }: { key: string; id: string }): Promise<boolean> => {
  const { webhooks } = (await service.get('/webhooks', key)).body as {
    webhooks: { id: string; replaying: boolean }[];
  };
  return webhooks.some((webhook) => webhook.id === id && !webhook.replaying);
};

describe('a replay', () => {
  it('sends the entries of a followed channel as they were sent, with the same IDs', async () => {
    const owner = await steps.customer();
    await follow(service, owner.key, { channel: '@tidewater', start: 4, labels: { user: '42' } });
    await until(() => receiver.received.length === 4);
    const sent = bodiesById();
    receiver.received.length = 0;
    const { status, body } = await replay(owner, '0');
    expect([status, body]).toEqual([202, expect.objectContaining({ id: owner.id, replaying: true })]);
    await until(() => receiver.received.length === 4);
    expect(bodiesById()).toEqual(sent);
    await until(() => isReplayed(owner));
    const deliveries = await steps.deliveriesOf(owner);
    expect(deliveries.map(({ eventId }) => eventId).sort()).toEqual(
      [...Object.keys(sent), ...Object.keys(sent)].sort(),
    );
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(8);
    const [, , third = ''] = await cursorsOf(owner.organizationId);
    receiver.received.length = 0;
    await replay(owner, third);
    await until(() => receiver.received.length === 2);
  });

  it('sends to a receiver that was down for hours every entry, also those that were dropped, in the order of the feed', async () => {
    const owner = await steps.customer();
    const subscription = await subscribed(owner);
    receiver.respond = respondWith(503);
    const others = `webhook_deliveries WHERE type = 'job.paused'`;
    await service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
      SELECT '${owner.id}', 'job.paused', '{}', clock_now(), clock_now() + interval '9 hours' FROM generate_series(1, 900)`);
    await decide(subscription, 130);
    await until(() => receiver.received.length > 0);
    await service.query(`DELETE FROM ${others}`);
    const dropped = (await service.query('SELECT last_value FROM webhook_events_dropped'))[0]?.['last_value'];
    expect(Number(dropped)).toBe(30);
    await clock.move(3 * 3_600);
    receiver.respond = respondWith(204);
    receiver.received.length = 0;
    expect((await replay(owner, '0')).status).toBe(202);
    // What becomes final meanwhile is sent once.
    const later = await subscribed(owner, { later: 'yes' });
    await decide(later, 3);
    await until(() => isReplayed(owner));
    await until(async () => (await steps.waiting(owner)) === 0);
    const events = receiver.received.map(({ body }) => JSON.parse(body) as { data: Record<string, string> });
    const videos = (of: string): (string | undefined)[] =>
      events.filter(({ data }) => data['subscriptionId'] === of).map(({ data }) => data['videoId']);
    expect(new Set(videos(subscription)).size).toBe(130);
    expect(videos(later)).toHaveLength(3);
    expect(events.at(-1)?.data['subscriptionId']).toBe(later);
    expect(new Set(receiver.received.map(idOf)).size).toBe(133);
    const stored = await service.query(
      `SELECT count(*)::int AS count FROM webhook_deliveries WHERE state = 'failed' AND attempts = 0`,
    );
    expect(stored).toEqual([{ count: 1 }]);
  });

  it('sends what the labels of the webhook select, however many other entries there are', async () => {
    const owner = await steps.customer({ labels: { user: 'b' } });
    const [other, own] = [await subscribed(owner, { user: 'a' }), await subscribed(owner, { user: 'b', team: 'x' })];
    await decide(other, 1_050);
    await decide(own, 2);
    await until(() => receiver.received.length === 2);
    receiver.received.length = 0;
    await replay(owner, '0');
    await until(() => isReplayed(owner));
    await until(() => receiver.received.length === 2);
    expect(await steps.waiting(owner)).toBe(0);
  });

  it('goes back when another one begins before it, and ends when the webhook is turned off', async () => {
    const owner = await steps.customer();
    const subscription = await subscribed(owner);
    await decide(subscription, 5);
    await until(() => receiver.received.length === 5);
    receiver.respond = respondWith(500);
    const cursors = await cursorsOf(owner.organizationId);
    await service.query(`UPDATE webhooks SET rested_until = clock_now() + interval '30 minutes'`);
    await replay(owner, cursors[3] ?? '');
    await replay(owner, cursors[1] ?? '');
    await replay(owner, cursors[4] ?? '');
    expect(await service.query('SELECT replay_after::int FROM webhooks')).toEqual([{ replay_after: 1 }]);
    receiver.respond = respondWith(410);
    await service.query('UPDATE webhooks SET rested_until = NULL, due_at = clock_now()');
    await until(async () => (await steps.webhookOf(owner))['disabledAt'] !== null);
    expect(await steps.webhookOf(owner)).toMatchObject({ replaying: false, disabledReason: 'gone' });
    expect((await replay(owner, '0')).body.error).toMatchObject({ code: 'conflict' });
  });

  it('is refused with a cursor that the feed refuses, and starts nothing', async () => {
    const owner = await steps.customer();
    await decide(await subscribed(owner), 2);
    const cases: [string, number, string][] = [
      ['x', 400, 'invalid_request'],
      ['2', 400, 'invalid_request'],
      ['2.AAAAAAAA', 410, 'cursor_unknown'],
      ['9.AAAAAAAA', 410, 'cursor_unknown'],
    ];
    for (const [after, status, code] of cases) {
      const refused = await replay(owner, after);
      expect([after, refused.status, refused.body.error.code]).toEqual([after, status, code]);
    }
    expect(await steps.webhookOf(owner)).toMatchObject({ replaying: false });
  });
});

describe('a delivery that has ended', () => {
  const retry = ({ key, id }: Customer, deliveryId: string): Promise<ServiceResponse> =>
    steps.send(key, 'POST', `/webhooks/${id}/deliveries/${deliveryId}/retry`);

  it('is sent again with the ID of its event, also when it succeeded, and not while it waits', async () => {
    const owner = await steps.customer();
    const { id } = await steps.attempted(await steps.enqueued(owner), 1);
    receiver.respond = respondWith(500);
    await clock.stop();
    const { status, body } = await retry(owner, id);
    expect([status, body]).toEqual([202, expect.objectContaining({ id, state: 'pending', attempts: 0, error: null })]);
    await steps.attempted(owner, 1);
    expect(new Set(receiver.received.map(idOf)).size).toBe(1);
    expect(receiver.received).toHaveLength(2);
    const refused = await retry(owner, id);
    expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringMatching(/is waiting/)]);
    receiver.respond = respondWith(204);
    await clock.move(6);
    await steps.attempted(owner, 2);
  });

  it('is not sent again by another webhook, beyond 1,000 that wait, and while the webhook is turned off', async () => {
    const owner = await steps.customer();
    const { id } = await steps.attempted(await steps.enqueued(owner), 1);
    const other = await steps.customer();
    expect((await retry({ ...owner, id: other.id, key: other.key }, id)).status).toBe(404);
    expect((await retry(owner, 'x')).status).toBe(404);
    await service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
      SELECT '${owner.id}', 'job.paused', '{}', clock_now(), clock_now() + interval '9 hours' FROM generate_series(1, 1000)`);
    expect((await retry(owner, id)).body.error.message).toMatch(/1000 waiting deliveries/);
    await service.query(
      `UPDATE webhooks SET disabled_at = clock_now(), disabled_reason = 'gone', due_at = NULL WHERE id = '${owner.id}'`,
    );
    expect((await retry(owner, id)).body.error).toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/turned off/),
    });
  });
});

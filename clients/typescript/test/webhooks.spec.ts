import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, type WebhookPayload } from '../src/index.js';

const SECRET = `whsec_${Buffer.from('a secret of a webhook, of 32 by').toString('base64')}`;
const OTHER = `whsec_${Buffer.from('another secret, after a rotation').toString('base64')}`;
const SUMMARY = { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 };
const EVENT = {
  type: 'job.completed',
  timestamp: '2026-11-20T17:12:00.000Z',
  data: { jobId: 'job_1', labels: {}, state: 'completed', reason: null, channelId: null, summary: SUMMARY },
} satisfies WebhookPayload;
const BODY = JSON.stringify(EVENT);
const SENT = new Date('2026-11-20T17:12:01Z');
const AT = { now: SENT.getTime() };

const signedOf = (body: string, ...secrets: string[]) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(SENT.getTime() / 1000),
  'webhook-signature': secrets.map((secret) => new Webhook(secret).sign('msg_1', SENT, body)).join(' '),
});
const signed = (...secrets: string[]) => signedOf(BODY, ...secrets);

describe('verifying a webhook', () => {
  it('returns the event when a signature is of the secret, also during a rotation', async () => {
    expect(await verifyWebhook(BODY, signed(SECRET), SECRET, AT)).toEqual(EVENT);
    expect(await verifyWebhook(BODY, new Headers(signed(OTHER, SECRET)), SECRET, AT)).toEqual(EVENT);
  });

  it('returns an event whose type says what its data is', async () => {
    const subjectOf = (event: WebhookPayload): string => {
      switch (event.type) {
        case 'webhook.test':
          return event.data.webhookId;
        case 'upload.ready':
        case 'upload.failed':
          return `${event.data.videoId} ${event.data.results}`;
        case 'quota.threshold':
          return `${event.data.threshold} % in ${event.data.period}`;
        case 'subscription.paused':
          return `${event.data.subscriptionId} ${event.data.reason}`;
        case 'job.completed':
        case 'job.failed':
        case 'job.paused':
        case 'job.canceled':
          return `${event.data.jobId} ${event.data.state}`;
      }
    };
    const { timestamp } = EVENT;
    const results = '/subscriptions/sub_1/results?after=0';
    const ofSubscription = { subscriptionId: 'sub_1', labels: {}, channel: null };
    const upload = { ...ofSubscription, videoId: 'hl-island__', url: '', title: null, publishedAt: null };
    const events: [WebhookPayload, subject: string][] = [
      [EVENT, 'job_1 completed'],
      [{ type: 'webhook.test', timestamp, data: { webhookId: 'whk_1' } }, 'whk_1'],
      [{ type: 'upload.ready', timestamp, data: { ...upload, code: null, results } }, `hl-island__ ${results}`],
      [
        {
          type: 'subscription.paused',
          timestamp,
          data: {
            ...{ subscriptionId: 'sub_1', labels: {}, state: 'paused', reason: 'plan_changed', channelId: null },
            summary: SUMMARY,
          },
        },
        'sub_1 plan_changed',
      ],
    ];
    const data = { threshold: 80, used: 80, limit: 100, period: '2026-11' } as const;
    events.push([{ type: 'quota.threshold', timestamp, data }, '80 % in 2026-11']);
    for (const [event, subject] of events) {
      const body = JSON.stringify(event);
      expect(subjectOf(await verifyWebhook(body, signedOf(body, SECRET), SECRET, AT))).toBe(subject);
    }
  });

  it('refuses every change of the body, the id or the time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(BODY.length - 1), fc.string({ minLength: 1, maxLength: 1 }), async (at, character) => {
        fc.pre(BODY[at] !== character);
        const changed = BODY.slice(0, at) + character + BODY.slice(at + 1);
        await expect(verifyWebhook(changed, signed(SECRET), SECRET, AT)).rejects.toThrow(
          'no signature is of this secret',
        );
      }),
    );
    for (const change of [{ 'webhook-id': 'msg_2' }, { 'webhook-timestamp': String(SENT.getTime() / 1000 + 1) }]) {
      await expect(verifyWebhook(BODY, { ...signed(SECRET), ...change }, SECRET, AT)).rejects.toThrow('not genuine');
    }
  });

  it('refuses another secret, an old message, and headers that are missing or unreadable', async () => {
    await expect(verifyWebhook(BODY, signed(OTHER), SECRET, AT)).rejects.toThrow('no signature is of this secret');
    const late = { now: AT.now + 301_000 };
    await expect(verifyWebhook(BODY, signed(SECRET), SECRET, late)).rejects.toThrow('more than 5 minutes away');
    await expect(verifyWebhook(BODY, {}, SECRET, AT)).rejects.toThrow('webhook-id is missing');
    const unreadable = { ...signed(SECRET), 'webhook-signature': 'v1,§ v2,AAAA v1' };
    await expect(verifyWebhook(BODY, unreadable, SECRET, AT)).rejects.toThrow('no signature is of this secret');
  });
});

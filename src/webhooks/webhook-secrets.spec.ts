import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { Environment } from '../config/environment.js';
import { generateSecret, messageBody, secretText, signedHeaders, WebhookSecrets } from './webhook-secrets.js';

const ID = 'whk_0a1b2c3d4e5f6a7b8c9d0e1f';
const secretsOf = (...keys: string[]): WebhookSecrets =>
  new WebhookSecrets(Object.assign(new Environment(), { WEBHOOK_SECRET_KEY: keys }));

describe('WebhookSecrets', () => {
  it('decrypts what it encrypted, and every encryption of a secret is another text', () => {
    const secrets = secretsOf('key');
    const secret = generateSecret();
    const [one, other] = [secrets.encrypt(ID, secret), secrets.encrypt(ID, secret)];
    expect([secrets.decrypt(ID, one), secrets.decrypt(ID, other)]).toEqual([secret, secret]);
    expect(one.equals(other)).toBe(false);
    expect(one.includes(secret)).toBe(false);
  });

  it('decrypts no secret of another webhook, key or content', () => {
    const secrets = secretsOf('key');
    const stored = secrets.encrypt(ID, generateSecret());
    expect(secrets.decrypt('whk_ffffffffffffffffffffffff', stored)).toBeUndefined();
    expect(secretsOf('other').decrypt(ID, stored)).toBeUndefined();
    fc.assert(
      fc.property(fc.nat(stored.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const changed = Buffer.from(stored);
        changed[at] = (changed[at] ?? 0) ^ change;
        return secrets.decrypt(ID, changed) === undefined;
      }),
    );
    fc.assert(fc.property(fc.nat(stored.length - 1), (end) => !secrets.decrypt(ID, stored.subarray(0, end))));
  });

  it('encrypts with the first key, and decrypts with each', () => {
    const both = secretsOf('new', 'old');
    const secret = generateSecret();
    const [old, stored] = [secretsOf('old').encrypt(ID, secret), both.encrypt(ID, secret)];
    expect(both.decrypt(ID, old)).toEqual(secret);
    expect(secretsOf('new').decrypt(ID, stored)).toEqual(secret);
    expect(secretsOf('old').decrypt(ID, stored)).toBeUndefined();
    expect(both.keyIds).toEqual([stored.subarray(0, 8), old.subarray(0, 8)]);
  });

  it('refuses to encrypt without WEBHOOK_SECRET_KEY, and says how to set it', () => {
    expect(() => secretsOf().encrypt(ID, generateSecret())).toThrow(
      /^Webhooks are disabled .* setting WEBHOOK_SECRET_KEY to 32 or more random characters \(openssl rand -hex 32\)\.$/,
    );
  });
});

describe('signedHeaders', () => {
  it('are accepted by the reference library with each of the secrets, and with no other', () => {
    const [current, previous, other] = [generateSecret(), generateSecret(), generateSecret()];
    fc.assert(
      fc.property(fc.jsonValue(), (data) => {
        const body = messageBody('job.completed', new Date('2026-11-20T16:00:00Z'), JSON.stringify(data));
        const headers = signedHeaders({ id: 'msg_1', body }, [current, previous], Date.now());
        const expected = { type: 'job.completed', timestamp: '2026-11-20T16:00:00.000Z', data };
        for (const secret of [current, previous]) {
          const verified: unknown = new Webhook(secretText(secret)).verify(body, headers);
          expect(JSON.stringify(verified)).toBe(JSON.stringify(expected));
        }
        expect(() => new Webhook(secretText(other)).verify(body, headers)).toThrow('No matching signature found');
        expect(() => new Webhook(secretText(current)).verify(`${body} `, headers)).toThrow();
      }),
      { numRuns: 50 },
    );
  });

  it('matches the example of the specification', () => {
    const secret = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');
    const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' };
    expect(signedHeaders(message, [secret], 1_614_265_330_999)).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });
});

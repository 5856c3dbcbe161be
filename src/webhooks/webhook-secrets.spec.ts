import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Environment } from '../config/environment.js';
import { generateSecret, WebhookSecrets } from './webhook-secrets.js';
import { UnreadableSecretError } from './webhook.js';

const ID = 'whk_0a1b2c3d4e5f6a7b8c9d0e1f';
const secretsOf = (...keys: string[]): WebhookSecrets =>
  new WebhookSecrets(Object.assign(new Environment(), { WEBHOOK_SECRET_KEY: keys }));
const signing = (secrets: WebhookSecrets, secret: Buffer, previous: Buffer | null = null, id = ID): Buffer[] =>
  secrets.signing(id, { secret, previous_secret: previous });

describe('WebhookSecrets', () => {
  it('decrypts what it encrypted, and every encryption of a secret is another text', () => {
    const secrets = secretsOf('key');
    const secret = generateSecret();
    const [one, other] = [secrets.encrypt(ID, secret), secrets.encrypt(ID, secret)];
    expect(signing(secrets, one, other)).toEqual([secret, secret]);
    expect(one.equals(other)).toBe(false);
    expect(one.includes(secret)).toBe(false);
  });

  it('decrypts no secret of another webhook, key or content', () => {
    const secrets = secretsOf('key');
    const stored = secrets.encrypt(ID, generateSecret());
    expect(() => signing(secrets, stored, null, 'whk_ffffffffffffffffffffffff')).toThrow(UnreadableSecretError);
    expect(() => signing(secretsOf('other'), stored)).toThrow(UnreadableSecretError);
    fc.assert(
      fc.property(fc.nat(stored.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const changed = Buffer.from(stored);
        changed[at] = (changed[at] ?? 0) ^ change;
        expect(() => signing(secrets, changed)).toThrow(UnreadableSecretError);
        expect(() => signing(secrets, stored.subarray(0, at))).toThrow(UnreadableSecretError);
      }),
    );
  });

  it('encrypts with the first key, and decrypts with each', () => {
    const both = secretsOf('new', 'old');
    const secret = generateSecret();
    const [old, stored] = [secretsOf('old').encrypt(ID, secret), both.encrypt(ID, secret)];
    expect(signing(both, old)).toEqual([secret]);
    expect(signing(secretsOf('new'), stored, old)).toEqual([secret]);
    expect(() => signing(secretsOf('old'), stored)).toThrow(UnreadableSecretError);
  });
});

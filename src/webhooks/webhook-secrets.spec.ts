import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Environment } from '../config/environment.js';
import { WebhookSecrets } from './webhook-secrets.js';
import { generateSecret } from './webhook-signature.js';

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

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Environment } from '../config/environment.js';
import { isKeyGuessable, WebhookSecrets } from './webhook-secrets.js';
import { generateSecret } from './webhook-signature.js';

const ID = 'whk_0a1b2c3d4e5f6a7b8c9d0e1f';
const environment = (variables: Partial<Environment>): Environment => Object.assign(new Environment(), variables);
const DATABASE_URL = 'postgres://app:a-password@db-1:5432/app';

describe('WebhookSecrets', () => {
  it('decrypts what it encrypted, and every encryption of a secret is another text', () => {
    const secrets = new WebhookSecrets('key');
    const secret = generateSecret();
    const [one, other] = [secrets.encrypt(ID, secret), secrets.encrypt(ID, secret)];
    expect([secrets.decrypt(ID, one), secrets.decrypt(ID, other)]).toEqual([secret, secret]);
    expect(one.equals(other)).toBe(false);
    expect(one.includes(secret)).toBe(false);
  });

  it('decrypts no secret of another webhook, key or content', () => {
    const secrets = new WebhookSecrets('key');
    const stored = secrets.encrypt(ID, generateSecret());
    expect(secrets.decrypt('whk_ffffffffffffffffffffffff', stored)).toBeUndefined();
    expect(new WebhookSecrets('other').decrypt(ID, stored)).toBeUndefined();
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
    const old = new WebhookSecrets('old');
    const both = new WebhookSecrets('new', 'old');
    const secret = generateSecret();
    const stored = old.encrypt(ID, secret);
    expect(both.decrypt(ID, stored)).toEqual(secret);
    const replacement = both.reencrypt(ID, stored) ?? Buffer.alloc(0);
    expect(new WebhookSecrets('new').decrypt(ID, replacement)).toEqual(secret);
    expect(both.reencrypt(ID, replacement)).toBeUndefined();
    expect(new WebhookSecrets('third').reencrypt(ID, stored)).toBeUndefined();
    expect(both.keyIds[0].equals(stored.subarray(0, 8))).toBe(false);
    expect(both.keyIds[1]?.equals(stored.subarray(0, 8))).toBe(true);
  });

  it('has the same key on every server of the database, and still reads with it when WEBHOOK_SECRET_KEY is set', async () => {
    const stored = (await WebhookSecrets.open(environment({ DATABASE_URL }))).encrypt(ID, generateSecret());
    const reads = async (variables: Partial<Environment>) =>
      (await WebhookSecrets.open(environment(variables))).decrypt(ID, stored) !== undefined;
    expect(await reads({ DATABASE_URL: DATABASE_URL.replace('db-1:5432', 'pooler:6432') })).toBe(true);
    expect(await reads({ DATABASE_URL: 'postgres://app@db-1/app?password=a-password' })).toBe(true);
    expect(await reads({ DATABASE_URL, CACHE_SECRET: 'x'.repeat(32) })).toBe(true);
    expect(await reads({ DATABASE_URL, WEBHOOK_SECRET_KEY: ['a-new-key'] })).toBe(true);
    expect(await reads({ DATABASE_URL: DATABASE_URL.replace('a-password', 'another') })).toBe(false);
  });

  it.each([
    ['postgres://app@db/app', undefined, true],
    ['postgres://app:short@db/app', undefined, true],
    ['postgres://app@db/app?password=short', undefined, true],
    ['postgres://app:0123456789abcdef@db/app', undefined, false],
    ['postgres://app@db/app?password=0123456789abcdef', undefined, false],
    ['postgres://app@db/app', ['a-key'], false],
    [undefined, undefined, false],
  ])('from %s with WEBHOOK_SECRET_KEY %s is guessable: %s', (url, WEBHOOK_SECRET_KEY, guessable) => {
    expect(isKeyGuessable(environment({ DATABASE_URL: url, WEBHOOK_SECRET_KEY }))).toBe(guessable);
  });

  it('has a key that is stored in DATA_DIR with the embedded database', async () => {
    const DATA_DIR = await mkdtemp(join(tmpdir(), 'webhook-secrets-'));
    try {
      const secret = generateSecret();
      const stored = (await WebhookSecrets.open(environment({ DATA_DIR }))).encrypt(ID, secret);
      expect((await WebhookSecrets.open(environment({ DATA_DIR }))).decrypt(ID, stored)).toEqual(secret);
    } finally {
      await rm(DATA_DIR, { recursive: true });
    }
  });
});

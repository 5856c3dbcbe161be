import { spawnSync } from 'node:child_process';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Environment } from '../config/environment.js';
import { generateSecret, messageBody, WebhookSecrets } from './webhook-secrets.js';
import { UnreadableSecretError } from './webhook.js';

const PYTHON = spawnSync('python3', ['--version']);

const ID = 'whk_0a1b2c3d4e5f6a7b8c9d0e1f';
const secretsOf = (...keys: string[]): WebhookSecrets =>
  new WebhookSecrets(Object.assign(new Environment(), { WEBHOOK_SECRET_KEY: keys }));
const signing = (secrets: WebhookSecrets, secret: Buffer, previous: Buffer | null = null, id = ID): Buffer[] =>
  secrets.credentials(id, { secret, previous_secret: previous, authorization_header: null }).secrets;

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

  it('decrypts the value of a header with each key, and as no secret', () => {
    const [both, old] = [secretsOf('new', 'old'), secretsOf('old')];
    const header = old.encryptAuthorization(ID, 'Bearer abc');
    const stored = { secret: both.encrypt(ID, generateSecret()), previous_secret: null };
    expect(both.credentials(ID, { ...stored, authorization_header: header }).authorization).toBe('Bearer abc');
    expect(both.credentials(ID, { ...stored, authorization_header: null }).authorization).toBeNull();
    expect(() => secretsOf('new').credentials(ID, { ...stored, authorization_header: header })).toThrow(
      'The authorization of this webhook cannot be read any more.',
    );
    expect(() => signing(both, header)).toThrow(UnreadableSecretError);
  });

  it('recognizes a text under each key', () => {
    const mac = secretsOf('old').mac('request');
    expect(secretsOf('new', 'old').isMacOf(mac, 'request')).toBe(true);
    expect(secretsOf('new', 'old').isMacOf(mac, 'another')).toBe(false);
    expect(secretsOf('new').isMacOf(mac, 'request')).toBe(false);
  });
});

describe('the body of a message', () => {
  const event = fc.dictionary(
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.nat().map(String)),
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.constant(null), fc.boolean()),
  );

  it('is the same after a receiver has parsed and written it', () => {
    fc.assert(
      fc.property(event, (data) => {
        const body = messageBody('job.completed', new Date(0), JSON.parse(JSON.stringify({ summary: data })));
        expect(JSON.stringify(JSON.parse(body))).toBe(body);
      }),
    );
  });

  (PYTHON.error ? it.skip : it)('is the same after Python has parsed and written it', () => {
    const data = { labels: { b: '1', '10': 'é\u2028\u007f', '9': '\u0001\t"\\/😀' }, used: 4003, title: null };
    const body = messageBody('upload.ready', new Date(0), data);
    const program =
      'import json,sys; print(json.dumps(json.loads(sys.stdin.buffer.read()), separators=(",",":"), ensure_ascii=False))';
    const { stdout } = spawnSync('python3', ['-X', 'utf8', '-c', program], { input: body });
    expect(stdout.toString().trimEnd()).toBe(body);
  });
});
